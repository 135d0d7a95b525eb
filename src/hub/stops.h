/* What wait statuses mean. docs/internals/engines.md has the table. */
#ifndef KYMO_HUB_STOPS_H
#define KYMO_HUB_STOPS_H

#include "kymo/engine.h"

struct task;

/* Thread `tid` has changed state so. On the hub's thread, lock held; releases it for callbacks. */
void hub_dispatch(struct kymo_hub *hub, pid_t tid, int status);

/* Unclaimed first stops that have lasted too long, if `is_idle`: else what has yet to be dispatched may be their
 * makers' events. And holds in exit events that have lasted too long. */
void hub_look_at_clock(struct kymo_hub *hub, bool is_idle);

/* Whether that is to be called every few milliseconds. */
bool hub_needs_clock(const struct kymo_hub *hub);

#endif
