/* Making threads the hub's. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_ADOPT_H
#define KYMO_HUB_THREAD_ADOPT_H

#include "kymo/engine.h"

struct task;

/*
 * Seize a thread of process `pid` (0: find it out); the thread runs on. `ret` may be a task that exists. A negative
 * errno, as kymo_engine_attach() has them.
 *
 *   -EAGAIN      its process has executed another program meanwhile, or it is about to be detached: try again after
 *                what is known of it has been dealt with
 *   -ETIMEDOUT   another thread calls execve, which does not proceed
 */
int hub_seize(struct kymo_hub *hub, pid_t tid, pid_t pid, struct task **ret);

/* Seize threads of a process that are not the hub's yet, once. How many were, or a negative errno; those that are
 * ending are passed over. */
int hub_seize_threads(struct kymo_hub *hub, pid_t pid);

/* The same until there is no other. 0, or a negative errno. */
int hub_seize_all(struct kymo_hub *hub, pid_t pid);

/* Whether the process has threads that are not the hub's. A first thread that had ended before it could be seized is
 * none. */
bool hub_lacks_threads(const struct kymo_hub *hub, pid_t pid);

/* Whether all threads of the process are the hub's, and none has yet to be found. */
bool hub_knows_threads(const struct kymo_hub *hub, pid_t pid);

/* Detach a thread that is no task: it runs on untraced; if it has the filter of picked calls, it is killed. */
void hub_abandon(const struct kymo_hub *hub, pid_t tid);

#endif
