/* What other threads ask the hub's thread for, and how it is woken. */
#ifndef KYMO_HUB_THREAD_REQUEST_H
#define KYMO_HUB_THREAD_REQUEST_H

#include "kymo/engine.h"

struct hub_request;
struct task;

bool hub_is_own_thread(const struct kymo_hub *hub);

/* Have `run(hub, argument)` executed by the hub's thread with the lock held, and wait for it; from that thread itself:
 * now. What it returns. The lock is not held. */
int hub_call(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument), void *argument);

/* What was asked for is done, and `result` is set. `is_all`: nothing is to be done in consequence. */
void hub_request_done(struct hub_request *request, bool is_all);

/* Have the thread look at a task soon. Lock held. */
void hub_kick(struct kymo_hub *hub, struct task *task);

/* Put an engine when the lock is not held any more. Lock held. */
void hub_drop(struct kymo_hub *hub, struct kymo_engine *engine);

/* The waker has stopped, as there is a request, or was killed. */
void hub_waker_stopped(struct kymo_hub *hub, int status);

/* Make the waker. A negative errno. End it. On the hub's thread. */
int hub_waker_create(struct kymo_hub *hub);
void hub_waker_destroy(struct kymo_hub *hub);

/* Have the hub's thread end its wait. Lock held. */
void hub_wake(struct kymo_hub *hub);

#endif
