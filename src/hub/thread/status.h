/* Statuses of threads out of turn. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_STATUS_H
#define KYMO_HUB_THREAD_STATUS_H

#include "kymo/engine.h"

struct hub_process;
struct task;

#define HUB_MANY_TASKS 64 /* so many are not looked at one by one */

/* Keep a status that was waited for, to be dispatched in its turn; a thread has one at a time. Forget it. */
void hub_keep_status(struct kymo_hub *hub, pid_t tid, int status);
void hub_forget_status(struct kymo_hub *hub, struct task *task);

/* The same for a task that is forgotten itself; its end is kept, as a caller may wait for that. */
void hub_forget_stop(struct kymo_hub *hub, const struct task *task);

/* Wait for at most `timeout_ns` for a task's next status, which is kept. */
bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret);

/* Whether the end of a task is kept so. */
bool hub_has_end(const struct kymo_hub *hub, const struct task *task);

/*
 * Kill a process. 0, or -ESRCH: its end was waited for, or is among the kept statuses, so its number may be another
 * process's by now. Nothing else may send signals to a number: only this thread's waits free it.
 */
int hub_kill(const struct kymo_hub *hub, const struct hub_process *process);

/* Take out the status that was kept first: the id of its thread, or 0. */
pid_t hub_take_early(struct kymo_hub *hub, int *status_ret);

/* Whether threads are waited for one by one. */
bool hub_looks_by_id(const struct kymo_hub *hub);

/* The stop that is being dispatched may not have been waited for: do it now, if the thread still stands there. */
void hub_wait_for_spared(struct kymo_hub *hub);

/* Its stop is on its way. */
void hub_expect(struct kymo_hub *hub, struct task *task);

#endif
