/* What a process is made of, for the files of this room. */
#ifndef KYMO_PROC_STATE_H
#define KYMO_PROC_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "arch/remote.h"
#include "base/error.h"
#include "base/vec.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"

struct hub_owner;
struct kymo_joined;
struct kymo_tree;

struct kymo_process {
	pid_t pid, inner_pid; /* for itself; 0: not known yet */
	struct kymo_memory memory;
	bool launched; /* our child */
	bool reaped;
	int status; /* of a reaped one */
	bool stopped;
	bool has_all_engines; /* of a followed process, since it was stopped: all its threads have been told */
	KYMO_VEC(struct kymo_thread) threads; /* stopped ones */
	bool has_maps;                        /* `maps` is what it has, as long as it is frozen and makes no call */
	struct kymo_maps maps;
	bool has_info; /* likewise `info`, which calls in its name leave as it is */
	struct kymo_process_info info;

	struct kymo_joined *joined; /* the hub that has frozen it; NULL: it runs */

	struct kymo_tree *tree;  /* whose hub has its threads while they run, too; NULL: none does */
	struct hub_owner *owner; /* for which it is frozen, if the hub is this thread's; NULL: it never has, and was not
				    launched */
	pid_t anothers;          /* the thread that another one traced when it was to be stopped last, or 0 */
	bool is_past;            /* it has ended or become another program, and no thread of it is left */
	bool was_born_here;      /* followed from its first instruction on */
	bool freezes_birth;      /* of its next thread */
	bool is_held;            /* one is held, which is yet to be told: until then the process does not run */
	struct kymo_process *memory_of; /* whose memory it runs in (vfork); NULL: its own */

	struct kymo_gadgets gadgets;
	uint64_t own_syscall; /* one of kymo's own (kymo_remote_inherit()), or 0 */
	struct {
		bool active;
		unsigned int n_nested; /* times that calls were begun while they were */
		size_t thread;
		struct user_regs_struct registers; /* the thread's own */
		uint64_t sp;
		uint8_t *kept; /* what lay where scratch and frame are */
		size_t n_kept;
	} remote;
	struct {
		bool began;
		uint64_t linker;    /* where the dynamic linker was loaded */
		bool is_static;     /* no dynamic linker */
		bool is_on;         /* it runs, to its next event */
		bool is_stopped;    /* … but for a group stop */
		uint64_t moment_ns; /* when it is looked at although nothing has happened */
		uint64_t debug;     /* where the linker puts the address of its struct r_debug, or 0 */
		uint64_t r_debug;   /* that address; 0: it had not put it there yet */
		bool has_run;       /* from its first instruction on */
		bool owes_tls;      /* that has happened, too, and is told next */
		struct {
			bool is_unwanted;
			bool is_in;      /* … the process */
			bool is_awaited; /* it is in, and was not stopped at yet: no calls are watched */
			uint64_t at, site;
		} stub;
	} startup;
};

/* Allocate the struct for `pid` and open what belongs to it; the latter as kymo_memory_init_held() does. */
struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret);
struct kymo_error *kymo_process_create_held(pid_t pid, struct kymo_process **ret, struct kymo_error **refusal_ret);

/* Free it, with what belongs to it; nothing holds it, and it is in no tree. */
void kymo_process_free(struct kymo_process *process);

/* What is known of its mappings is out of date; of it as a whole, as it runs. */
void kymo_process_forget_maps(struct kymo_process *process);
void kymo_process_forget(struct kymo_process *process);

/* BAD_DATA for anything but a 64-bit program of this architecture. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process);

/* The one with that id, or NULL. */
struct kymo_thread *kymo_find_thread(const struct kymo_process *process, pid_t tid);

#endif
