/* The tree of threads that trace and are traced, for the files of this room. docs/internals/nested.md has its rules.
 * All runs on the hub's thread, but what is said not to. */
#ifndef KYMO_NESTED_INNER_H
#define KYMO_NESTED_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "kymo/engine.h"

#define INNER_BUCKETS 1024u
#define INNER_AT_ENTRY 1 /* messages of stops at system calls, PTRACE_EVENTMSG_SYSCALL_… of <linux/ptrace.h> */
#define INNER_AT_EXIT 2

enum inner_stop {
	INNER_SIGNAL, /* before a signal is delivered */
	INNER_CALL,   /* at a system call */
	INNER_MADE,   /* a signal that there never was: of attaching, an exec, a step */
	INNER_EVENT,  /* PTRACE_EVENT_… */
	INNER_GROUP,  /* with its process, and not seized: no siginfo */
};

enum inner_mode { INNER_RUNS, INNER_TRACES_CALLS, INNER_STEPS };

/* Where a thread is that calls wait4() or waitid(). wait.c has what may follow what. */
enum inner_phase {
	INNER_NOT_WAITING,
	INNER_WAITS,    /* in the kernel, for its own children */
	INNER_HELD,     /* at the entry, as it has none */
	INNER_ANSWERED, /* `result` is what comes back */
};

/* As its tracer sees it. states.c has what may follow what. */
enum inner_state {
	INNER_GOES,   /* it is in no stop of its tracer's */
	INNER_UNTOLD, /* it is stopped, and no tracer has waited for that */
	INNER_TOLD,   /* it is stopped, as its tracer knows */
	INNER_DEAD,
};

struct inner_call {
	bool is_in;
	bool has_entry_to_see; /* it stands at the entry of a wait that is yet to be looked at */
	uint64_t number, args[6];
};

struct inner_waiting {
	enum inner_phase phase;
	bool must_hold; /* the kernel has said that there are no children to wait for */
	int64_t result;
};

struct inner_stopped {
	enum inner_stop kind;
	int code; /* signal, and event << 8 */
	siginfo_t info;
	unsigned long message;
	uint64_t serial; /* stops and ends are told in their order */
};

/* Stops to come. */
struct inner_owed {
	bool stop, exit; /* at once when it goes on from this one: of attaching or an interrupt; of its call's exit */
	bool vfork_done; /* at the exit of its call */
};

/* A thread of the tree, traced or tracing or neither. The engine's data. */
struct inner_thread {
	struct kymo_inner *owner;
	struct kymo_engine *engine;
	struct inner_thread *next; /* in its bucket */
	pid_t tid, pid;
	pid_t maker; /* the thread that made its process, or 0 */
	enum inner_state state;
	bool is_involved;
	bool has_traced; /* some other's tracer is it, or was */
	int group_stop;  /* as in struct task */
	struct inner_call call;
	struct inner_waiting wait;

	/* As one that is traced. */
	struct inner_thread *tracer; /* NULL: it is not */
	bool is_seized;
	bool is_child; /* the first thread of a child of its tracer's process: the kernel tells of its end */
	unsigned int options;
	pid_t group; /* of processes, when it was attached to */
	enum inner_mode mode;
	struct inner_stopped stop;
	struct inner_owed owed;
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
	atomic_uint refs; /* of the caller's, and one a thread */
	struct inner_thread *buckets[INNER_BUCKETS];
	KYMO_VEC(struct inner_end) ends;
	uint64_t serial;
	pthread_t clock;      /* checks for signals to threads that are held */
	pthread_mutex_t lock; /* guards what follows; taken before the hub's, never within */
	pthread_cond_t changed;
	bool has_clock, is_ending;
	KYMO_VEC(struct inner_thread *) held;
};

#endif
