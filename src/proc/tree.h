/* A tree of processes, for tree.c, follow.c, keep.c and startup.c. */
#ifndef KYMO_PROC_TREE_H
#define KYMO_PROC_TREE_H

#include <signal.h>

#include "base/vec.h"
#include "proc/hub.h"
#include "proc/process.h"

struct kymo_tree {
	struct kymo_hub *hub;		/* on this thread: whatever happens is told within hub_pump() */
	bool is_alone;			/* of one process, while it starts: what that makes is not followed. It goes with the process, and has none of the three below */
	int fd;				/* of SIGCHLD */
	sigset_t mask;			/* as it was before */
	struct sigaction action;
	KYMO_VEC(struct kymo_process *) members;	/* past ones, too, until they are destroyed */
	KYMO_VEC(struct kymo_tree_event) queue;
	size_t first;			/* of the queue that was not told yet */
	bool is_in_next;
	void (*meanwhile)(void *data);
	void *data;
};

/* A tree that is alone, for a stopped process. */
struct kymo_error *kymo_tree_create_alone(struct kymo_process *process);

/* The living member with that id, or NULL. */
struct kymo_process *kymo_tree_find(const struct kymo_tree *tree, pid_t pid);

/* Add a member that the hub has; false when memory is out. */
bool kymo_tree_add(struct kymo_tree *tree, struct kymo_process *process);

/* Remove one, and what was to be told of it. */
void kymo_tree_forget(struct kymo_tree *tree, const struct kymo_process *process);

/* When memory is out the event is lost, with its refusal. */
void kymo_tree_tell(struct kymo_tree *tree, const struct kymo_tree_event *event);

/* Whether a start-up event of this one waits to be told; it is not told then. Ends and execs are, afterwards. */
bool kymo_tree_take_startup(struct kymo_process *process, enum kymo_startup_event *ret);

/* ---- follow.c ------------------------------------------------------------------------------------------------------ */

/* Have an engine on a thread, or on each of a process: negative errno values as of kymo_engine_attach(). */
int kymo_follow_thread(struct kymo_tree *tree, pid_t tid);
int kymo_follow_process(struct kymo_tree *tree, pid_t pid);

/* Its maker was killed before it could tell: a thread of a member, or a process that nobody is known to have made. */
void kymo_follow_orphan(void *tree, pid_t tid);

/* The process starts a program when it goes on; it does so no more; it may have done all without having told anything. */
void kymo_follow_start(struct kymo_process *process);
void kymo_follow_start_is_over(struct kymo_process *process);
void kymo_follow_look_at_start(struct kymo_process *process);

/* ---- startup.c ----------------------------------------------------------------------------------------------------- */

/* What the end of a system call means; false: nothing. */
bool kymo_startup_returned(struct kymo_process *process, long number, const uint64_t args[6], int64_t result, enum kymo_startup_event *ret);

/* A moment has passed without any. */
bool kymo_startup_looks_done(struct kymo_process *process);

/* Nobody waits for what comes. */
void kymo_startup_off(struct kymo_process *process);

#endif
