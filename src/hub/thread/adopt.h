/* Making threads the hub's. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_ADOPT_H
#define KYMO_HUB_THREAD_ADOPT_H

#include "kymo/engine.h"

struct task;

/*
 * Seize a thread of process `pid` (0: look which), which runs on. A negative errno, as kymo_engine_attach() has them.
 * `ret` may be one that there is.
 *
 *   -EAGAIN      it has become another program meanwhile, or is about to be let go: again, when what is known of the
 *                one before has been dealt with
 *   -ETIMEDOUT   another thread executes something, and does not get on with it
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

/* Nobody knows it: it runs on without us, or, where it has a filter of ours, ends. */
void hub_abandon(const struct kymo_hub *hub, pid_t tid);

#endif
