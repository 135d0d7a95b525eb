/* System calls that failed because of a stop. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_UNDO_H
#define KYMO_HUB_UNDO_H

#include "kymo/engine.h"

struct task;

/*
 * A stopped thread's call may have failed because of us, as it would not have without a tracer: by the stop itself
 * (`signal` 0), or for a signal that its process ignores, which wakes up only who has a tracer. It is made again,
 * unless an engine wants it to end.
 */
void hub_undo_interruption(struct task *task, int signal);

#endif
