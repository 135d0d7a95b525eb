/* Threads that stop and go on. All with the lock held, on the hub's thread. */
#ifndef KYMO_HUB_RUN_H
#define KYMO_HUB_RUN_H

#include "kymo/engine.h"

struct task;

/* Whether an engine stops it. */
bool hub_is_held(const struct task *task);

/* Whether a request ends the call that it sleeps in. */
bool hub_is_interrupted(const struct task *task);

/* Deal with what engines have wanted since it was looked at last: interrupt it, tell what is owed, let it run, let it
 * go. */
void hub_attend(struct kymo_hub *hub, struct task *task);

/* Let a stopped one go on, or stay, as its engines want; or let it go where there are none. */
void hub_settle(struct kymo_hub *hub, struct task *task);

/*
 * Whether a step is done that its thread, which stands at a PTRACE_EVENT_STOP, has not told yet. Then its own stop has
 * been made to come next, without an instruction in between. That ends a group stop, into which the thread has to be
 * sent again.
 */
bool hub_waits_for_step(struct task *task);

#endif
