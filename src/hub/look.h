/* Looking at threads and changing them. */
#ifndef KYMO_HUB_LOOK_H
#define KYMO_HUB_LOOK_H

#include "hub/thread/task.h"

/* At the entry of a system call: make it another one. A negative errno. */
int hub_set_call(struct task *task, uint64_t number, const uint64_t args[6]);

/* Which stop at a system call it is; fills task->call. STOP_EVENT: neither, or it was killed. */
enum task_stop hub_read_call(struct task *task);

/* Whether its memory has breakpoints, which reading must not show. */
bool hub_has_breakpoints(struct kymo_engine *engine);

#endif
