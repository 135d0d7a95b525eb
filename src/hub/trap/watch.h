/* Debug registers of engines. */
#ifndef KYMO_HUB_TRAP_WATCH_H
#define KYMO_HUB_TRAP_WATCH_H

#include "kymo/engine.h"

struct task;

/* The same for debug registers. `is_step`: it may be the end of a step as well. */
bool hub_watch_stopped(struct kymo_hub *hub, struct task *task, bool is_step, int *group_ret);

void hub_watches_drop(struct kymo_engine *engine);

/* A stopped thread goes on, or is let go (`all`): clear what nobody has claimed any more. */
void hub_watches_clear(struct kymo_hub *hub, struct task *task, bool all);

/* The kernel has cleared them. */
void hub_watches_forget(struct kymo_hub *hub, struct task *task);

#endif
