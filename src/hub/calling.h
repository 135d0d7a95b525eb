/* Stops of threads that make remote calls. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_CALLING_H
#define KYMO_HUB_CALLING_H

#include "kymo/engine.h"

struct task;

/* Whether a stop of thread `task` was of a call that is not its own, and was dealt with. */
bool hub_calling_stopped(struct kymo_hub *hub, struct task *task, int status);

#endif
