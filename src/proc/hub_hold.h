/* Processes that stand still for who changes them (hub_hold.c), and for who follows them (keep.c). docs/design/engines.md and following.md have the rules. */
#ifndef KYMO_PROC_HUB_HOLD_H
#define KYMO_PROC_HUB_HOLD_H

#include "proc/hub.h"

struct hub_message;

/* For whom a process stands still: who is connected, or a part of the hub's own process. What is not constant is guarded by the hub's lock. */
struct hub_holder {
	struct kymo_hub *hub;
	int requests;			/* the socket by which it asks; -1: it is this process' own, on the hub's thread */
	pid_t held;			/* the process, or 0 */
	pid_t kept;			/* that it follows, or 0 */
	bool is_closed;			/* … and nobody else may hold for now */
	bool takes;			/* threads that nobody traces, for as long as it holds them */
	struct hub_guest *guest;	/* the client whose it is, or NULL */
	int proof;			/* a client's, for as long as it asks for a hold (hub_proof.h) */
};

/* ---- hub_hold.c: holding --------------------------------------------------------------------------------------------- */

/* Do what a message asks for, if it is of these. -EINVAL: another one. */
int64_t hub_hold_run(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The end of a hold, if there is one. From the holder's thread, or the hub's. */
void hub_hold_drop(struct hub_holder *holder);

/* The same, on the hub's thread, lock held. */
void hub_hold_end(struct kymo_hub *hub, struct hub_holder *holder);

/* Whether it can be written to by whoever has it open: no breakpoints are in its memory, which the hub would have to know of. */
bool hub_hold_is_plain(struct hub_holder *holder);

/* ---- keep.c ----------------------------------------------------------------------------------------------------------- */

/* One of this process, with the hub of this thread, or NULL. The end of the last one is the end of that hub, if it has no tree; NULL is allowed. */
struct hub_holder *hub_holder_create(void);
void hub_holder_destroy(struct hub_holder *holder);

/* This own holder follows process `pid` of the hub from now on; whoever holds it, holds what it was before. -ESRCH. */
int hub_hold_keep(struct hub_holder *holder, pid_t pid);

/*
 * In a callback, too: its threads, and those that they make, run no further than to their next stop; HOLD, later, waits for that. -ESRCH. 1: another one holds it, at whose end it stands still for this
 * one, and no thread runs in between; until then HOLD says -EBUSY.
 */
int hub_hold_claim(struct hub_holder *holder);

/* Take back a claim that waits for the end of another's hold, if it does. On the hub's thread, lock held, as the next. */
void hub_hold_forgo(struct kymo_hub *hub, struct hub_holder *holder);

/* Nobody follows its process any more, and whoever holds that, holds what it was before. From a callback. */
void hub_hold_abandon(struct hub_holder *holder);

/* It is its keeper's from now on; threads are claimed. */
void hub_hold_take(struct hub_process *process);

/* ---- hub_hold.c for hub_borrow.c ---------------------------------------------------------------------------------------- */

/* What the hub's thread is asked for. */
struct holding {
	struct hub_holder *holder;
	struct hub_message *message;
	uint8_t *memory;
	bool is_patient;		/* looks no further than to the first that has not stopped */
};

/* Have `function(hub, struct holding *)` run by the hub's thread. */
int hub_hold_ask(int (*function)(struct kymo_hub *hub, void *argument), struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The thread that the message is about, if it is of the holder's process and stands still. */
struct task *hub_held_task(struct kymo_hub *hub, const struct holding *holding);

/* On the hub's thread. One of another process has nothing there, but its callbacks. */
bool hub_hold_is_in_callback(const struct hub_holder *holder);

/* Until `is_done`, which is asked with the lock held; now and then, as the hub's thread has more to do than to wake us up. -ETIMEDOUT; -EPIPE: nobody waits for it any more. */
int hub_hold_wait(struct hub_holder *holder, bool (*is_done)(const struct hub_holder *holder, struct hub_message *message), struct hub_message *message, uint64_t timeout_ns);

/* ---- hub_borrow.c: threads that make calls --------------------------------------------------------------------------------- */

int64_t hub_borrow_begin(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_call(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_end(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The hold has ended: it gets its registers back, now or behind its call. On the hub's thread, lock held. */
void hub_borrow_leave(struct task *task);

#endif
