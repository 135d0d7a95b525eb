/* The threads that run in a memory with breakpoints. */
#ifndef KYMO_HUB_TRAP_DISARM_H
#define KYMO_HUB_TRAP_DISARM_H

#include "kymo/engine.h"

struct hub_process;
struct hub_space;
struct task;

/* Whether a thread must stay the hub's without engines. */
bool hub_space_keeps(const struct task *task);

/* The task has stopped and stays so: perhaps no thread of the space can run now. It is going on. */
void hub_space_rest(struct kymo_hub *hub, const struct task *task);
void hub_space_wake(const struct task *task);

/* Whether a thread of its processes runs. */
bool hub_space_can_run(const struct kymo_hub *hub, const struct hub_space *space);

/* Stop all threads that could run in the memory of `process`, except `except`, without telling engines. Other reasons
 * for which they stop are told later. */
void hub_space_hold(struct kymo_hub *hub, const struct hub_process *process, const struct task *except);

#endif
