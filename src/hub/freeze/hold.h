/* Processes that stand still for a recorder that is connected, or for a part of this process. docs/design/engines.md
 * has the rules. */
#ifndef KYMO_HUB_FREEZE_HOLD_H
#define KYMO_HUB_FREEZE_HOLD_H

#include "hub/thread/claim.h"
#include "kymo/engine.h"

struct hub_message;
struct task;

/* The end of a hold, if there is one. From the holder's thread, or the hub's. */
void hub_hold_drop(struct hub_holder *holder);

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

/* Whether `is_done`, with the lock. */
bool hub_hold_is_done(const struct hub_holder *holder,
		      bool (*is_done)(const struct hub_holder *holder, struct hub_message *message),
		      struct hub_message *message);

/* An `is_done`: whether all threads that are claimed stand still. The message has the first one that does not. */
bool hub_hold_are_all_still(const struct hub_holder *holder, struct hub_message *message);

/* It won't run any more in its program. */
bool hub_hold_is_past(const struct task *task);

#endif
