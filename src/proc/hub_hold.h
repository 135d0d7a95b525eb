/* Processes that stand still for who changes them (hub_hold.c), and that for nobody else (keep.c). docs/design/engines.md has the rules. */
#ifndef KYMO_PROC_HUB_HOLD_H
#define KYMO_PROC_HUB_HOLD_H

#include "proc/hub.h"

struct hub_message;

/* For whom a process stands still: who is connected, or a part of the hub's own process. What is not constant is guarded by the hub's lock. */
struct hub_holder {
	struct kymo_hub *hub;
	int requests;			/* the socket by which it asks; -1: it is this process' own, on the hub's thread */
	pid_t held;			/* the process, or 0 */
	pid_t kept;			/* that stands still for nobody else, or 0 */
};

/* Do what a message asks for, if it is of these. -EINVAL: another one. */
int64_t hub_hold_run(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The end of a hold, if there is one. From the holder's thread, or the hub's. */
void hub_hold_drop(struct hub_holder *holder);

/* From now on process `pid` of the hub stands still for this own holder alone: -EPERM for others. -EBUSY, -ESRCH. */
int hub_hold_keep(struct hub_holder *holder, pid_t pid);

/* Whether it can be written to by whoever has it open: no breakpoints are in its memory, which the hub would have to know of. */
bool hub_hold_is_plain(struct hub_holder *holder);

/* In a callback: its threads, and those that they make, run no further than to their next stop; HOLD, later, waits for that. -ESRCH. */
int hub_hold_claim(struct hub_holder *holder);

#endif
