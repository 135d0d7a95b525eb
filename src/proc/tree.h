/* A tree of processes that are followed. */
#ifndef KYMO_PROC_TREE_H
#define KYMO_PROC_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "proc/linker.h"

struct kymo_process;

/*
 * A process with all its descendants, whose threads stay seized while they run (docs/internals/following.md). All
 * functions of processes work for its members, too. What must not wait (signals, new threads) is dealt with during any
 * wait of this room; kymo_tree_next() tells the rest.
 */
struct kymo_tree;

enum kymo_tree_kind {
	KYMO_TREE_FORKED,  /* `process` is new, stopped before its first instruction; made by `other` */
	KYMO_TREE_SHARING, /* `process` is new, and runs in the memory of `other`, which made it (vfork) */
	KYMO_TREE_REFUSED, /* process `tid` is new and not followed, nor what it does; `refusal` says why. `process` is
			      NULL */
	KYMO_TREE_EXECED,  /* `process` is new, and has the pid of `other`, which is no more; stopped as after
			      kymo_process_launch() */
	KYMO_TREE_STARTUP, /* `startup` has happened in `process`, which is stopped; see kymo_process_startup_on() */
	KYMO_TREE_THREAD,  /* `process` has a new thread `tid`, which runs; or see `is_held` */
	KYMO_TREE_THREAD_ENDED, /* another than the last one */
	KYMO_TREE_ENDED,        /* `process` is no more; `status` as waitpid() gives it */
};

struct kymo_tree_event {
	enum kymo_tree_kind kind;
	struct kymo_process *process; /* the tree's until the receiver destroys it; which must be after it has ended or
					 has been replaced, or it is let go */
	struct kymo_process *other;   /* NULL: not known */
	pid_t tid;
	int status;
	enum kymo_startup_event startup;
	char comm[16];              /* of the thread; "" if it was not available */
	bool is_held;               /* of THREAD: see kymo_process_freeze_birth() */
	struct kymo_error *refusal; /* of FORKED and EXECED: why its memory cannot be read; of ENDED: it has executed a
				       program, and why that is not followed; of REFUSED; the receiver's */
};

/*
 * Create a tree. Other recorders may join its processes as long as the tree exists (kymo_hub_connect()). There is one
 * tree at a time. Until it is destroyed it takes SIGCHLD for itself (blocked, and not ignored), and the ends of all
 * children of this process. To be called after kymo_process_launch(), as children inherit both.
 */
struct kymo_error *kymo_tree_create(struct kymo_tree **ret);

/* Let go of all processes that are left, as kymo_process_destroy() does. NULL is allowed. */
void kymo_tree_destroy(struct kymo_tree *tree);

/*
 * Let go of all processes that are left. True: other recorders trace some of them through the tree. Calls of this
 * function, as of kymo_tree_next(), serve those recorders. `who_ret` is the process of one of them; 0: it has just
 * gone, or is in another PID namespace. No callback is called meanwhile. False: no recorder does so, nor can from now
 * on.
 */
bool kymo_tree_hand_over(struct kymo_tree *tree, pid_t *who_ret);

/* Whether a launched process that the tree has let go has ended since. waitpid() does not give its status then. If
 * kymo_tree_hand_over() was false, the answer is final: the caller waits for later ends. */
bool kymo_tree_has_ended(struct kymo_tree *tree, pid_t pid, int *status_ret);

struct kymo_hub;

/* Its hub, for engines of the caller's. Their callbacks run in this thread, in waits of this room. It is the tree's. */
struct kymo_hub *kymo_tree_hub(const struct kymo_tree *tree);

/* Readable when there is something for kymo_tree_next(). The caller asks for it before each wait: the tree may have
 * taken the signal that makes it readable, and gives it back then. */
int kymo_tree_fd(const struct kymo_tree *tree);

/* A recorder that has joined may take up to KYMO_ANSWER_MS for an answer, in kymo_tree_next() too. There `meanwhile` is
 * called every few milliseconds. It may not use the tree, nor its processes. */
void kymo_tree_set_meanwhile(struct kymo_tree *tree, void (*meanwhile)(void *data), void *data);

/* Follow `process` from now on. It may be launched and stopped, or opened and running; it is left as it was. BUSY, GONE
 * as kymo_process_stop() has them. */
struct kymo_error *kymo_tree_take(struct kymo_tree *tree, struct kymo_process *process);

/* The next event, without waiting; false: none yet. To be called every 20 ms while programs start. */
bool kymo_tree_next(struct kymo_tree *tree, struct kymo_tree_event *ret);

/*
 * Whether the next thread that a followed process makes is held, once. The thread and its maker run no instruction of
 * their own until the receiver of THREAD, which says so, resumes the process. kymo_process_stop() stops the other
 * threads. Not for programs that start.
 */
void kymo_process_freeze_birth(struct kymo_process *process, bool is_to_freeze);

/* ---- for startup.c --------------------------------------------------------------------------- */

/* A tree that is alone, for a stopped process. */
struct kymo_error *kymo_tree_create_alone(struct kymo_process *process);

/* Whether a start-up event of this one waits to be told; it is not told then. Ends and execs are, afterwards. */
bool kymo_tree_take_startup(struct kymo_process *process, enum kymo_startup_event *ret);

#endif
