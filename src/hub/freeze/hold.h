/* Processes that stand still for a recorder that is connected, or for a part of this process. docs/internals/engines.md
 * has the rules. */
#ifndef KYMO_HUB_FREEZE_HOLD_H
#define KYMO_HUB_FREEZE_HOLD_H

#include "kymo/engine.h"

struct hub_guest;
struct hub_message;
struct task;

/* A claimed thread stands where it is to. On the hub's thread, lock held, as the next. */
bool hub_is_still(const struct task *task);

/* Its registers, which were read: where they are asked for next, that is saved. */
void hub_hold_note(struct task *task, const struct user_regs_struct *registers);

/* For whom a process stands still: who is connected, or a part of the hub's own process. What is not constant is
 * guarded by the hub's lock. */
struct hub_holder {
	struct kymo_hub *hub;
	int requests;            /* the socket by which it asks; -1: it is this process' own, on the hub's thread */
	pid_t held;              /* the process, or 0 */
	pid_t kept;              /* that it follows, or 0 */
	bool is_closed;          /* … and nobody else may hold for now */
	bool takes;              /* threads that nobody traces, for as long as it holds them */
	struct hub_guest *guest; /* the client whose it is, or NULL */
	int proof;               /* a client's, for as long as it asks for a hold (remote/proof.h) */
};

/* Do what a message asks for, if it is of these. -EINVAL: another one. */
int64_t hub_hold_run(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The end of a hold, if there is one. From the holder's thread, or the hub's. */
void hub_hold_drop(struct hub_holder *holder);

/* The same, on the hub's thread, lock held. */
void hub_hold_end(struct kymo_hub *hub, struct hub_holder *holder);

/* Whether it can be written to by whoever has it open: no breakpoints are in its memory, which the hub would have to
 * know of. */
bool hub_hold_is_plain(struct hub_holder *holder);

/* What the hub's thread is asked for. */
struct holding {
	struct hub_holder *holder;
	struct hub_message *message;
	uint8_t *memory;
	bool is_patient; /* looks no further than to the first that has not stopped */
};

/* Have `function(hub, struct holding *)` run by the hub's thread. */
int hub_hold_ask(int (*function)(struct kymo_hub *hub, void *argument), struct hub_holder *holder,
		 struct hub_message *message, uint8_t *memory);

/* The thread that the message is about, if it is of the holder's process and stands still. */
struct task *hub_held_task(struct kymo_hub *hub, const struct holding *holding);

/* On the hub's thread. One of another process has nothing there, but its callbacks. */
bool hub_hold_is_in_callback(const struct hub_holder *holder);

/* Until `is_done`, which is asked with the lock held; now and then, as the hub's thread has more to do than to wake us
 * up. -ETIMEDOUT; -EPIPE: nobody waits for it any more. */
int hub_hold_wait(struct hub_holder *holder,
		  bool (*is_done)(const struct hub_holder *holder, struct hub_message *message),
		  struct hub_message *message, uint64_t timeout_ns);

#endif
