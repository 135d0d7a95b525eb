/* An owner of this process, at the hub of its thread: what it follows and requests, and how it lets go.
 * docs/internals/following.md has the rules. */
#ifndef KYMO_HUB_FREEZE_OWNER_H
#define KYMO_HUB_FREEZE_OWNER_H

#include "kymo/engine.h"

struct hub_owner;
struct hub_process;

/* One of this process, with the hub of this thread, or NULL. The end of the last one is the end of that hub, if it has
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

/* Follow its process no more: detach the engines that this process has there. Other processes may have engines there.
 */
void hub_freeze_leave(struct hub_owner *owner);

/* How many threads of its process have engines that are detached and not let go; that have not ended. */
int hub_freeze_count_left(struct hub_owner *owner);
int hub_freeze_count_living(struct hub_owner *owner);

/* Look at each thread of its hub that nothing wants any more. How many there are. */
int hub_freeze_hurry(struct hub_owner *owner);

/* Deal with all that has come to its hub, for some milliseconds at most. */
void hub_freeze_serve(struct hub_owner *owner);

#endif
