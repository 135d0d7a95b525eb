/* Frozen processes, of a client's recorder or of a part of this process. docs/internals/engines.md has the rules. */
#ifndef KYMO_HUB_FREEZE_FREEZE_H
#define KYMO_HUB_FREEZE_FREEZE_H

#include "hub/thread/frozen.h"
#include "kymo/engine.h"

struct hub_message;
struct task;

/* The end of a freeze, if there is one. From the owner's thread, or the hub's. */
void hub_freeze_drop(struct hub_owner *owner);

/* Whether a session that has the process's memory open may write to it. It may not while breakpoints are in that
 * memory, as the hub has to know of such writes. */
bool hub_freeze_is_plain(struct hub_owner *owner);

/* A request to the hub's thread. */
struct freeze_job {
	struct hub_owner *owner;
	struct hub_message *message;
	uint8_t *memory;
	bool is_patient; /* checks no further than the first thread that has not stopped */
};

/* Have `function(hub, struct freeze_job *)` run by the hub's thread. */
int hub_freeze_ask(int (*function)(struct kymo_hub *hub, void *argument), struct hub_owner *owner,
		   struct hub_message *message, uint8_t *memory);

/* The thread that the message is about, if it belongs to the owner's process and is stopped. */
struct task *hub_frozen_task(struct kymo_hub *hub, const struct freeze_job *job);

/* On the hub's thread. An owner of another process has only its callbacks there. */
bool hub_freeze_is_in_callback(const struct hub_owner *owner);

/* Wait until `is_done`, which is called with the lock held. It is called now and then, as the hub's thread does not
 * wake the waiter. -ETIMEDOUT; -EPIPE: the client is gone. */
int hub_freeze_wait(struct hub_owner *owner,
		    bool (*is_done)(const struct hub_owner *owner, struct hub_message *message),
		    struct hub_message *message, uint64_t timeout_ns);

/* Whether `is_done`, with the lock. */
bool hub_freeze_is_done(const struct hub_owner *owner,
			bool (*is_done)(const struct hub_owner *owner, struct hub_message *message),
			struct hub_message *message);

/* An `is_done`: whether all threads that must freeze are stopped. The message has the first thread that is not. */
bool hub_freeze_are_all_still(const struct hub_owner *owner, struct hub_message *message);

/* Whether it will not run any more in its program. */
bool hub_freeze_is_past(const struct task *task);

#endif
