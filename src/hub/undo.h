/* System calls that failed because of a stop. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_UNDO_H
#define KYMO_HUB_UNDO_H

#include "kymo/engine.h"

struct task;

/*
 * Repair what tracing did to a stopped thread's call. It may have failed as it would not have without a tracer: because
 * of the stop itself (`signal` 0), or because of a signal that its process ignores, which wakes only traced threads.
 */
void hub_undo_interruption(struct task *task, int signal);

#endif
