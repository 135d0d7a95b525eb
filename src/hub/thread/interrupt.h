/* Making a thread stop. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_INTERRUPT_H
#define KYMO_HUB_THREAD_INTERRUPT_H

#include "kymo/engine.h"

struct task;

/* Make it stop. */
void hub_interrupt(struct kymo_hub *hub, struct task *task);

/*
 * Take a thread from its stop before a signal to a stop without a signal, at the same instruction. False: it was
 * killed, or it stops later; that is told next. `group_ret` is the signal of the group stop that this stop is, or 0.
 */
bool hub_swallow(struct kymo_hub *hub, struct task *task, int *group_ret);

#endif
