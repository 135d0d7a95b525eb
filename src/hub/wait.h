/* Waiting for threads. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_WAIT_H
#define KYMO_HUB_WAIT_H

#include "kymo/engine.h"

struct task;

/* What comes next, or 0: nothing has come, though others may want something. `sleeps`: wait for it. The lock is
 * released meanwhile. */
pid_t hub_wait(struct kymo_hub *hub, bool sleeps, int *status_ret);

/* Whether thread `tid` has told something, which is to be dispatched now. */
bool hub_look(struct kymo_hub *hub, pid_t tid, int *status_ret);

/* Deal with what hub_wait() has told: of the waker, the keeper, or a thread. */
void hub_deal(struct kymo_hub *hub, pid_t tid, int status);

/* Both, without waiting: whether anything had come. */
bool hub_deal_with_next(struct kymo_hub *hub);

/*
 * The hub's thread has nothing to do, and was asked for something a moment ago. If all of its threads stand, wait for
 * what else is asked for, for a moment: a debugger asks for several things at each stop, and to wake a thread that
 * waits for others takes two processes. False: it has not waited, and has to wait for threads.
 */
bool hub_rest(struct kymo_hub *hub);

#endif
