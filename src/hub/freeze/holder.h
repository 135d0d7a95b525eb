/* A holder of this process, at the hub of its thread: what it follows and claims, and how it lets go.
 * docs/design/following.md has the rules. */
#ifndef KYMO_HUB_FREEZE_HOLDER_H
#define KYMO_HUB_FREEZE_HOLDER_H

#include "kymo/engine.h"

struct hub_holder;
struct hub_process;

/* One of this process, with the hub of this thread, or NULL. The end of the last one is the end of that hub, if it has
 * no tree; NULL is allowed. */
struct hub_holder *hub_holder_create(void);
void hub_holder_destroy(struct hub_holder *holder);

/* This own holder follows process `pid` of the hub from now on; whoever holds it, holds what it was before. -ESRCH. */
int hub_hold_keep(struct hub_holder *holder, pid_t pid);

/*
 * In a callback, too: its threads, and those that they make, run no further than to their next stop; HOLD, later, waits
 * for that. -ESRCH. 1: another one holds it, at whose end it stands still for this one, and no thread runs in between;
 * until then HOLD says -EBUSY.
 */
int hub_hold_claim(struct hub_holder *holder);

/* Nobody follows its process any more, and whoever holds that, holds what it was before. From a callback. */
void hub_hold_abandon(struct hub_holder *holder);

/* Follow its process no more: detach the engines that this process has there. Other processes may have engines there.
 */
void hub_hold_leave(struct hub_holder *holder);

/* How many threads of its process have engines that are detached and not let go; that have not ended. */
int hub_hold_count_left(struct hub_holder *holder);
int hub_hold_count_living(struct hub_holder *holder);

/* Look at each thread of its hub that nothing wants any more. How many there are. */
int hub_hold_hurry(struct hub_holder *holder);

/* Deal with all that has come to its hub, for some milliseconds at most. */
void hub_hold_serve(struct hub_holder *holder);

#endif
