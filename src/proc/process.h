/* What the files of this room share. */
#ifndef KYMO_PROC_PROCESS_H
#define KYMO_PROC_PROCESS_H

#include "base/vec.h"
#include "proc/proc.h"
#include "proc/tracee.h"

struct kymo_process {
	pid_t pid;
	int pidfd;
	int memory;			/* /proc/PID/mem, or -1 after it was refused */
	bool launched;			/* our child */
	bool reaped;
	int status;			/* of a reaped one */
	bool stopped;
	KYMO_VEC(struct kymo_thread) threads;	/* stopped ones */

	struct kymo_joined *joined;	/* the hub through which it stands still; NULL: it runs */

	struct kymo_tree *tree;		/* whose hub has its threads while they run, too; NULL: nobody does */
	struct hub_holder *holder;	/* for which it stands still, where the hub is this thread's; NULL: it never has, and was not launched */
	pid_t anothers;			/* the thread that another one traced when it was to be stopped last, or 0 */
	bool is_past;			/* it has ended or become another program, and no thread of it is left */
	bool was_born_here;		/* followed from its first instruction on */
	bool holds_birth;		/* of its next thread */
	bool is_held;			/* one is held, which is yet to be told: until then nobody lets the process run */
	struct kymo_process *memory_of;	/* whose memory it runs in (vfork); NULL: its own */

	struct kymo_gadgets gadgets;
	uint64_t own_syscall;	/* one of kymo's own (kymo_remote_inherit()), or 0 */
	struct {
		bool active;
		size_t thread;
		struct user_regs_struct registers;	/* the thread's own */
		uint64_t sp;
		uint8_t *kept;		/* what lay where scratch and frame are */
		size_t n_kept;
	} remote;
	struct {
		bool began;
		bool is_static;		/* no dynamic linker */
		bool is_on;		/* it runs, to its next event */
		bool is_stopped;	/* … but for a group stop */
		uint64_t moment_ns;	/* when it is looked at although nothing has happened */
		uint64_t debug;		/* where the linker puts the address of its struct r_debug, or 0 */
	} startup;
};

/* Let a stopped thread, its registers read, that makes a call for a recorder which is gone finish that and come back to where it was. Others are left alone. GONE, BUSY. */
struct kymo_error *kymo_bring_home(struct kymo_process *process, pid_t tid);

/* BAD_DATA for anything but a 64-bit program of this architecture. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process);

/* Allocate the struct for `pid` and open what belongs to it. */
struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret);

/* The same for one that is held, by its first thread. Why its memory can't be opened is no error, and goes to `refusal_ret`. */
struct kymo_error *kymo_process_create_held(pid_t pid, struct kymo_process **ret, struct kymo_error **refusal_ret);

/* What a call that was interrupted by a stop alone would fail with is undone: it is made again when the thread, which is stopped with its registers read, goes on. */
void kymo_undo_interruption(struct kymo_process *process, struct kymo_thread *thread);

/*
 * Choose a thread of the process to make system calls by: one of the first threads that is in no system call, or else
 * the one whose call suffers least. Returns `pid` where no thread is better than the first one. The choice may be out of
 * date: a thread that runs may be about to sleep.
 */
pid_t kymo_thread_to_borrow(pid_t pid);

/*
 * Find a thread of process `pid` whose system call suffers less by that than `best` says. Threads that are stopped in
 * `held` are left out; `held` may be NULL. Returns 0 where there is no such thread.
 */
pid_t kymo_thread_rather_than(pid_t pid, enum kymo_remote_sleep best, const struct kymo_process *held);

/* The same for threads that run beside the stopped threads of `process`: one that is better than all of these, or 0. */
pid_t kymo_thread_to_borrow_rather(struct kymo_process *process);

/* A character as in /proc/PID/stat; 'X': it is gone. */
char kymo_thread_state(pid_t pid, pid_t tid);

/* The one with that id, or NULL. */
struct kymo_thread *kymo_find_thread(const struct kymo_process *process, pid_t tid);

/* Wait a moment for a thread to do something: the longer the higher `spins`, which the caller counts. */
void kymo_wait_a_little(unsigned int spins);

/* What thread `tid` does with a signal; where it can't be asked, what is the default. */
enum kymo_disposition {
	KYMO_DISPOSITION_CAUGHT,
	KYMO_DISPOSITION_IGNORED,	/* by default, too */
	KYMO_DISPOSITION_STOP,
	KYMO_DISPOSITION_TERM,
	KYMO_DISPOSITION_CORE,
};
enum kymo_disposition kymo_signal_disposition(pid_t tid, int signal);

/* Whether one that was sent to this very thread waits to be delivered. False where it can't be asked. */
bool kymo_signal_is_pending(pid_t tid, int signal);

/* BUSY, with where it is. */
struct kymo_error *kymo_thread_did_not_stop(struct kymo_process *process, pid_t tid);

/* BUSY, PERMISSION, GONE, FAILED: why a thread of process `pid` can't be traced, by the errno of its seizing. */
struct kymo_error *kymo_not_seized(pid_t pid, int err);

/* Who else than the caller traces the thread; 0: nobody. */
pid_t kymo_other_tracer(pid_t tid);

/* One of its tree that runs in the memory of `process`, or 0. */
pid_t kymo_tree_sharing_child(const struct kymo_process *process);

/* Deal with one change of state of any process of the tree, if there is one. */
bool kymo_tree_pump(struct kymo_tree *tree);

/* It is there for one process that starts, and is let go then. */
bool kymo_tree_is_alone(const struct kymo_tree *tree);

/* ---- keep.c: stopping and resuming ------------------------------------------------------------------------------------ */

/*
 * Stop a process that nobody traces: all threads if `second` is 0, also where the first one is stopped already; else the
 * first thread and thread `second`. Behind an error the process runs as before.
 */
struct kymo_error *kymo_keep_take(struct kymo_process *process, pid_t second);

/* Let it run, and be nobody's tracer. Who does not stop for that in a while is let go by the next of these two, or by kymo_keep_serve(). */
void kymo_keep_leave(struct kymo_process *process);
void kymo_keep_serve(struct kymo_process *process);

/* Those that are followed. */
struct kymo_error *kymo_keep_stop(struct kymo_process *process);
void kymo_keep_resume(struct kymo_process *process);
void kymo_keep_run(struct kymo_process *process);	/* the same, of a program that is starting and goes on with that */

/* If no thread of it lives, wait for its end to be told. */
void kymo_keep_look(struct kymo_process *process);

/* Follow it no more; it runs as it had been. */
void kymo_keep_release(struct kymo_process *process);

#endif
