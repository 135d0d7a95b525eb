/* An owner of this process, at the hub of its thread: what it follows and requests, and how it leaves.
 * docs/internals/following.md has the rules. */
#ifndef KYMO_HUB_FREEZE_OWNER_H
#define KYMO_HUB_FREEZE_OWNER_H

#include "kymo/engine.h"

struct hub_owner;
struct hub_process;

/* An owner of this process, with the hub of this thread, or NULL. Destroying the last one destroys that hub, if it has
 * no tree; NULL is allowed. */
struct hub_owner *hub_owner_create(void);
void hub_owner_destroy(struct hub_owner *owner);

/* This owner follows process `pid` of the hub from now on. A freeze of what the process was before ends. -ESRCH. */
int hub_freeze_follow(struct hub_owner *owner, pid_t pid);

/*
 * Request a freeze; in a callback, too. The threads of the process, and threads that they make, run to their next stop
 * and no further. FREEZE waits for that later. -ESRCH. 1: another owner has the process frozen. This owner gets it when
 * that freeze ends, and no thread runs in between; until then FREEZE returns -EBUSY.
 */
int hub_freeze_request(struct hub_owner *owner);

/* No owner follows its process any more. A freeze of what the process was before ends. From a callback. */
void hub_freeze_abandon(struct hub_owner *owner);

/* Stop following its process: detach the engines that this process has there. Other processes may keep engines there.
 */
void hub_freeze_leave(struct hub_owner *owner);

/* How many threads of its process have engines that are detached and not let go; that have not ended. */
int hub_freeze_count_left(struct hub_owner *owner);
int hub_freeze_count_living(struct hub_owner *owner);

/* Check each thread of its hub that has no request any more. Returns their number. */
int hub_freeze_hurry(struct hub_owner *owner);

/* Handle all pending events of its hub, for some milliseconds at most. */
void hub_freeze_serve(struct hub_owner *owner);

#endif
