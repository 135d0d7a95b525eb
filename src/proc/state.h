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

/* What this process has made of it. state.c has what may follow what. */
enum process_state {
	PROCESS_RUNS,
	PROCESS_STOPPED,  /* `threads` are frozen: all, or the first one and perhaps one for calls */
	PROCESS_COMPLETE, /* likewise, in a tree that has an engine on each thread: none can have been missed */
	PROCESS_PAST,     /* it has ended or become another program, and no thread of it is left */
};

enum process_child { PROCESS_IS_NOT_OURS, PROCESS_IS_OURS, PROCESS_WAS_REAPED };

/* What is read of it once, as long as it is frozen. */
struct process_known {
	bool has_maps; /* until it makes a call */
	struct kymo_maps maps;
	bool has_info;
	struct kymo_process_info info;
};

/* Its next thread. */
struct process_birth {
	bool is_to_freeze;
	bool is_held; /* one is, and is yet to be told of: until then the process does not run */
};

/* Calls in its name. */
struct process_remote {
	struct kymo_gadgets gadgets;
	uint64_t own_syscall; /* a gadget that kymo has put there (kymo_remote_inherit()), or 0 */
	bool active;
	unsigned int n_nested; /* times that calls were begun while they were */
	size_t thread;
	struct user_regs_struct registers; /* the thread's own */
	uint64_t sp, mask;                 /* mask: of blocked signals, its own */
	uint8_t *kept;                     /* what lay where scratch and frame are */
	size_t n_kept;
};

/* The start of its program, until it is linked. */
enum startup_phase {
	STARTUP_UNKNOWN, /* nothing has been found out about it */
	STARTUP_AT_EXEC, /* it has run no instruction of its program, as far as is known */
	STARTUP_RUNS,    /* to its next event */
	STARTUP_TOLD,    /* that has come, or is not waited for */
};

enum startup_stub { STUB_IS_OUT, STUB_IS_AWAITED /* it is in, and no calls are watched */, STUB_IS_IN };

struct process_startup {
	enum startup_phase phase;
	bool is_in_group_stop; /* while it runs */
	bool owes_tls;         /* that has happened, too, and is told next */
	bool wants_no_stub;
	enum startup_stub stub;
	uint64_t stub_at, stub_site;
	int stub_signal;    /* that it sends */
	bool has_come;      /* … and has got */
	bool is_fresh;      /* nothing of its program has run, and no harmless signal was looked for */
	int harmless;       /* while it is frozen: a signal by which batches end; 0: none is known to come */
	uint64_t moment_ns; /* when it is looked at although nothing has happened */
	uint64_t linker;    /* where the dynamic linker was loaded; 0: it has none */
	uint64_t debug;     /* where the linker puts the address of its struct r_debug, or 0 */
	uint64_t r_debug;   /* that address; 0: it had not put it there yet */
};

struct kymo_process {
	pid_t pid, inner_pid; /* for itself; 0: not known yet */
	struct kymo_memory memory;
	struct kymo_process *memory_of; /* whose memory it runs in (vfork); NULL: its own */
	bool was_born_here;             /* followed from its first instruction on */

	struct kymo_tree *tree;  /* whose hub has its threads while they run, too; NULL: none does */
	struct hub_owner *owner; /* for which it is frozen, if the hub is this thread's; NULL: it never has, and was not
				    launched */
	enum process_state state;
	enum process_child child;
	int status; /* of one that is past or was reaped */

	struct kymo_joined *joined; /* the hub that has frozen it; NULL: it runs */
	KYMO_VEC(struct kymo_thread) threads;
	pid_t busy_thread; /* of the last freeze that was refused: the thread that another process traces, or 0 */
	struct process_known known;
	struct process_birth birth;
	struct process_remote remote;
	struct process_startup startup;
};

/* Allocate the struct for `pid` and open what belongs to it; the latter as kymo_memory_init_held() does. */
struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret);
struct kymo_error *kymo_process_create_held(pid_t pid, struct kymo_process **ret, struct kymo_error **refusal_ret);

/* Free it, with what belongs to it; nothing holds it, and it is in no tree. */
void kymo_process_free(struct kymo_process *process);

/* The only function that sets the state. */
void kymo_process_set_state(struct kymo_process *process, enum process_state state);

/* The only function that sets the phase. */
void kymo_process_set_startup(struct kymo_process *process, enum startup_phase phase);

/* It runs, unless it is past. */
void kymo_process_set_running(struct kymo_process *process);

static inline bool kymo_process_is_stopped(const struct kymo_process *process)
{
	return process->state == PROCESS_STOPPED || process->state == PROCESS_COMPLETE;
}

/* What is known of its mappings is out of date; of it as a whole, as it runs. */
void kymo_process_forget_maps(struct kymo_process *process);
void kymo_process_forget(struct kymo_process *process);

/* BAD_DATA for anything but a 64-bit program of this architecture. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process);

/* The one with that id, or NULL. */
struct kymo_thread *kymo_find_thread(const struct kymo_process *process, pid_t tid);

#endif
