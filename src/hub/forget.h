/* The end of a task. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_FORGET_H
#define KYMO_HUB_FORGET_H

#include "kymo/engine.h"

struct task;

/* It is no more, or no more ours: engines lose it, without a callback. */
void hub_forget_task(struct kymo_hub *hub, struct task *task);

#endif
