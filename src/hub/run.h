/* Threads that stop and go on. All with the lock held, on the hub's thread. */
#ifndef KYMO_HUB_RUN_H
#define KYMO_HUB_RUN_H

#include "kymo/engine.h"

struct task;

/* The masks of all its engines together. */
unsigned int hub_events(const struct task *task);

/* Make it stop. */
void hub_interrupt(struct kymo_hub *hub, struct task *task);

/*
 * From before a signal to a stop that has none, at the same place: it executes nothing in between. False: another thing
 * happened to it (it was killed), or it stops later; that is told next. `group_ret` is the signal of a group stop that
 * this stop is, or 0.
 */
bool hub_swallow(struct kymo_hub *hub, struct task *task, int *group_ret);

/* Whether it stands still for an engine. */
bool hub_is_held(const struct task *task);

/* Whether somebody wants the call that it sleeps in to end. */
bool hub_is_interrupted(const struct task *task);

/* Deal with what engines have wanted since it was looked at last: interrupt it, tell what is owed, let it run, let it
 * go. */
void hub_attend(struct kymo_hub *hub, struct task *task);

/* Let a stopped one go on, or stay, as its engines want; or let it go where there are none. */
void hub_settle(struct kymo_hub *hub, struct task *task);

/* Nobody holds it any more, as the kernel has woken it. */
void hub_break_stops(struct task *task);

/* Forget the deadline of a hold in its exit event. */
void hub_end_hold(struct kymo_hub *hub, struct task *task);

#endif
