/* What the files of the layer for tracers inside of the tree share. docs/design/inner.md has its rules. All of it runs on the hub's thread, but what is said not to. */
#ifndef KYMO_PROC_INNER_H
#define KYMO_PROC_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "kymo/engine.h"
#include "proc/process.h"

#define INNER_BUCKETS 1024u
#define INNER_AT_ENTRY 1	/* messages of stops at system calls, PTRACE_EVENTMSG_SYSCALL_… of <linux/ptrace.h> */
#define INNER_AT_EXIT 2

enum inner_stop {
	INNER_SIGNAL,		/* before a signal is delivered */
	INNER_CALL,		/* at a system call */
	INNER_MADE,		/* a signal that there never was: of attaching, an exec, a step */
	INNER_EVENT,		/* PTRACE_EVENT_… */
	INNER_GROUP,		/* with its process, and not seized: no siginfo */
};

enum inner_mode { INNER_RUNS, INNER_TRACES_CALLS, INNER_STEPS };

/* Where a thread is that calls wait4() or waitid(). */
enum inner_phase {
	INNER_NOT_WAITING,
	INNER_WAITS,		/* in the kernel, for its own children */
	INNER_HELD,		/* at the entry, as it has none */
	INNER_ANSWERED,		/* `result` is what comes back */
};

/* A thread of the tree, traced or tracing or neither. The engine's data. */
struct inner_thread {
	struct kymo_inner *owner;
	struct kymo_engine *engine;
	struct inner_thread *next;	/* in its bucket */
	pid_t tid, pid;
	pid_t maker;			/* the thread that made its process, or 0 */
	bool is_involved, is_dead;
	bool has_traced;		/* some other's tracer is it, or was */
	int group_stop;			/* as in struct task */

	/* The call that it is in. */
	bool is_in_call;
	uint64_t number, args[6];
	enum inner_phase phase;
	bool must_hold;			/* the kernel has said that there are no children to wait for */
	int64_t result;

	/* As one that is traced. */
	struct inner_thread *tracer;	/* NULL: it is not */
	bool is_seized;
	bool is_child;			/* the first thread of a child of its tracer's process: the kernel tells of its end */
	unsigned int options;
	pid_t group;			/* of processes, when it was attached to */
	enum inner_mode mode;
	bool is_stopped, is_untold;	/* … and nobody has waited for that */
	enum inner_stop stop;
	int code;			/* of the stop: signal, and event << 8 */
	siginfo_t info;
	unsigned long message;
	uint64_t serial;		/* stops and ends are told in their order */
	bool owes_attach, owes_interrupt, owes_exit;	/* stops to come at once when it goes on from this one */
	bool owes_vfork_done;		/* at the exit of its call */
	bool has_entry_to_see;		/* it stands at the entry of a wait that is yet to be looked at */
};

/* A thread that has ended and was not waited for. */
struct inner_end {
	struct inner_thread *tracer;
	pid_t tid, group;
	int status;
	uint64_t serial;
};

struct kymo_inner {
	struct kymo_hub *hub;
	atomic_uint refs;		/* of the caller's, and one a thread */
	struct inner_thread *buckets[INNER_BUCKETS];
	KYMO_VEC(struct inner_end) ends;
	uint64_t serial;
	pthread_t clock;		/* looks whether somebody sends a signal to one that is held */
	pthread_mutex_t lock;		/* guards what follows; taken before the hub's, never within */
	pthread_cond_t changed;
	bool has_clock, is_ending;
	KYMO_VEC(struct inner_thread *) held;
};

/* ---- inner_table.c: the threads of the tree, by their ids --------------------------------------------------------------- */

/* Events of every thread's engine. */
#define INNER_ALWAYS \
	(KYMO_EVENTS_SYSCALL | KYMO_EVENTS_SIGNAL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_JCTL | KYMO_EVENT_DEATH | KYMO_EVENT_REAP)

void inner_add(struct inner_thread *thread);
void inner_forget(struct inner_thread *thread);

struct inner_thread *inner_find(const struct kymo_inner *inner, pid_t tid);

/* The first one, or the one after `thread`; NULL: there is none. */
struct inner_thread *inner_next(const struct kymo_inner *inner, const struct inner_thread *thread);

/* It traces or is traced from now on: it is told what belongs to that. */
void inner_involve(struct inner_thread *thread);

/* ---- inner_stop.c: a thread that is traced --------------------------------------------------------------------------------- */

/* It stands so from now on, and its tracer is told. `info`: NULL: what belongs to the code. */
void inner_stop(struct inner_thread *thread, enum inner_stop stop, int code, const siginfo_t *info, unsigned long message);

/* It is not traced before this, and is to stop if `stops`. */
void inner_trace(struct inner_thread *thread, struct inner_thread *tracer, bool is_seized, unsigned int options, bool stops);

/* Whether the kernel tells its tracer of its end. */
void inner_find_parent(struct inner_thread *thread);

/* Let it go on, as its tracer wants. A negative errno. */
int inner_resume(struct inner_thread *thread, enum inner_mode mode, int signal);

/* Nobody traces it any more; it goes on. `signal`: as of inner_resume(). */
void inner_untrace(struct inner_thread *thread, int signal);

/* Make it stop soon. */
void inner_interrupt(struct inner_thread *thread);

/* It stands still. Whether a stop that was owed is made now. */
bool inner_make_owed(struct inner_thread *thread);

/* Its tracer has ended. */
void inner_lose_tracer(struct inner_thread *thread);

/* ---- inner_wait.c ------------------------------------------------------------------------------------------------------------ */

bool inner_is_wait(uint64_t number);

/* At its entry. True: the thread stays here. */
bool inner_wait_entered(struct inner_thread *thread);

/* At its exit, with what the kernel gives. */
void inner_wait_left(struct inner_thread *thread, int64_t result);

/* Something is to be told of `thread` to `tracer`, by SIGCHLD with this code and status too. */
void inner_tell(struct inner_thread *tracer, const struct inner_thread *thread, int code, int status);

/* Whoever of process `pid` is held looks for its children again. */
void inner_wake(struct kymo_inner *inner, pid_t pid);

/* One that is held: whether it goes on because of a signal. */
bool inner_is_signalled(const struct inner_thread *thread);
void inner_let_wait(struct inner_thread *thread);

/* It ends, or is let go of. */
void inner_forget_wait(struct inner_thread *thread);

int inner_start_clock(struct kymo_inner *inner);
void inner_stop_clock(struct kymo_inner *inner);

/* ---- inner_ptrace.c ---------------------------------------------------------------------------------------------------------- */

/* At the exit of ptrace(), with what the kernel gives. */
void inner_ptrace_left(struct inner_thread *thread, int64_t result);

/* ---- inner_allow.c: what /proc says ------------------------------------------------------------------------------------------- */

struct inner_status {
	unsigned int uid[3], gid[3];	/* real, effective, saved */
	pid_t parent;
	uint64_t pending, blocked, ignored;	/* signals; bit 0 is number 1 */
	uint64_t permitted, effective;	/* capabilities */
	bool is_nested;			/* in another pid namespace */
};

/* Of a thread. False: there is none. Any thread may call it. */
bool inner_read_status(pid_t tid, struct inner_status *ret);

/* Whether the kernel would let thread `tracer` attach to thread `tid`, were it not traced. */
bool inner_may_trace(pid_t tracer, pid_t tid);

#endif
