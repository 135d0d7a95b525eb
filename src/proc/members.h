/* What a tree is made of: its members, and what is to be told of them. */
#ifndef KYMO_PROC_MEMBERS_H
#define KYMO_PROC_MEMBERS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "proc/tree.h"
#include "procfs/maps.h"

struct kymo_hub;
struct kymo_process;

struct kymo_tree {
	struct kymo_hub *hub; /* on this thread: whatever happens is told within hub_pump() */
	bool is_alone; /* of one process, while it starts: what that makes is not followed. It goes with the process,
			  and has none of the three below */
	int fd;        /* of SIGCHLD */
	sigset_t mask; /* as it was before */
	struct sigaction action;
	KYMO_VEC(struct kymo_process *) members; /* past ones, too, until they are destroyed */
	KYMO_VEC(struct kymo_tree_event) queue;
	size_t first; /* of the queue that was not told yet */
	bool is_in_next;
	struct { /* in the file that had the last process' gadgets: where to look first in the next one. Its programs'
		    linker is mostly the same */
		struct kymo_map_part text;
		uint64_t syscall, sigreturn; /* in it */
	} gadgets;
	struct { /* the call of the last process' linker that a start stub was for, and where that was */
		struct kymo_map_part text;
		uint64_t site, stub, entry; /* in it */
	} start;
	void (*meanwhile)(void *data);
	void *data;
};

/* The living member with that id, or NULL. */
struct kymo_process *kymo_tree_find(const struct kymo_tree *tree, pid_t pid);

/* Add a member that the hub has; false when memory is out. */
bool kymo_tree_add(struct kymo_tree *tree, struct kymo_process *process);

/* Remove one, and what was to be told of it. */
void kymo_tree_forget(struct kymo_tree *tree, const struct kymo_process *process);

/* When memory is out the event is lost, with its refusal. */
void kymo_tree_tell(struct kymo_tree *tree, const struct kymo_tree_event *event);

/* A process of its tree that runs in the memory of `process`, or 0. */
pid_t kymo_tree_sharing_child(const struct kymo_process *process);

/* Deal with one change of state of any process of the tree, if there is one. */
bool kymo_tree_pump(struct kymo_tree *tree);

/* Whether kymo_tree_doze() ends for each change of state. Then there is no need to look for another one first, as one
 * thread alone does not change its state twice at once. */
bool kymo_tree_tells_of_next(const struct kymo_tree *tree);

/* Wait until there may be one, a moment at most: the longer the higher `spins`, which counts the looks that found none.
 */
void kymo_tree_doze(struct kymo_tree *tree, unsigned int spins);

/* It is there for one process that starts, and is let go then. */
bool kymo_tree_is_alone(const struct kymo_tree *tree);

/* Free it, with events that were not told. Its members are gone, and it has no clients any more. */
void kymo_tree_free(struct kymo_tree *tree);

#endif
