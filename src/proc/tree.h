/* A tree of processes, for tree.c and follow.c. */
#ifndef KYMO_PROC_TREE_H
#define KYMO_PROC_TREE_H

#include <signal.h>

#include "base/vec.h"
#include "proc/process.h"

/* A thread whose first stop came before its maker's, or instead of it. */
struct stranger {
	pid_t tid;
	int status;
	uint64_t since_ns;
};

struct kymo_tree {
	int fd;				/* of SIGCHLD */
	sigset_t mask;			/* as it was before */
	struct sigaction action;
	KYMO_VEC(struct kymo_process *) members;	/* past ones, too, until they are destroyed */
	KYMO_VEC(struct stranger) strangers;
	KYMO_VEC(struct kymo_tree_event) queue;
	size_t first;			/* of the queue that was not told yet */
	char comm[16];			/* of the thread whose end is being dealt with */
};

/* The living member that `tid` is a thread of, or NULL. */
struct kymo_process *kymo_tree_find(const struct kymo_tree *tree, pid_t tid);

/* Add a member; false when memory is out. */
bool kymo_tree_add(struct kymo_tree *tree, struct kymo_process *process);

/* Remove one, and what was to be told of it. */
void kymo_tree_forget(struct kymo_tree *tree, const struct kymo_process *process);

/* When memory is out the event is lost, with its refusal. */
void kymo_tree_tell(struct kymo_tree *tree, const struct kymo_tree_event *event);

/* Take `tid` off the list of strangers, if it is there. */
bool kymo_tree_take_stranger(struct kymo_tree *tree, pid_t tid, int *status_ret);

/* The name of a thread, also of one that has ended and was not waited for. */
void kymo_tree_read_comm(pid_t tid, char ret[16]);

/* ---- follow.c ------------------------------------------------------------------------------------------------------ */

/* Its maker was killed before it could tell: a thread of a member, or a process that nobody is known to have made. */
void kymo_follow_orphan(struct kymo_tree *tree, const struct stranger *orphan);

#endif
