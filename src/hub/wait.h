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

/* The stop that is being dispatched may not have been waited for: do it now, if the thread still stands there. */
void hub_wait_for_spared(struct kymo_hub *hub);

/* Its stop is on its way. */
void hub_expect(struct kymo_hub *hub, struct task *task);

/* Keep a status that was waited for, to be dispatched in its turn; a thread has one at a time. Forget it. */
void hub_keep_status(struct kymo_hub *hub, pid_t tid, int status);
void hub_forget_status(struct kymo_hub *hub, struct task *task);

/* The same for who is forgotten itself, but for its end, which somebody may wait for. */
void hub_forget_stop(struct kymo_hub *hub, const struct task *task);

/* Wait for at most `timeout_ns` for a task's next status, which is kept. */
bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret);

#endif
