/* At the hub: a process that is connected. */
#ifndef KYMO_HUB_REMOTE_GUEST_H
#define KYMO_HUB_REMOTE_GUEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "hub/thread/frozen.h"
#include "hub/remote/message.h"
#include "hub/remote/table.h"

struct hub_door;
struct hub_guest;
struct hub_process;

/* What the hub asks of a guest. */
struct hub_guest_hooks {
	void (*take)(struct hub_guest *guest, struct kymo_engine *engine);
	void (*release)(struct kymo_engine *engine);
	void (*get)(struct hub_guest *guest);
	void (*put)(struct hub_guest *guest);
	void (*lose)(struct hub_guest *guest);
	int (*check_proof)(int fd, struct hub_process *process, pid_t tid);
	bool (*proves)(struct hub_guest *guest, pid_t tid);
};

/* What a guest's thread tells the door. */
struct hub_threshold {
	void (*enter)(
		struct hub_guest *guest); /* it has said that it is a client; it is inside unless the door is closed */
	void (*leave)(struct hub_guest *guest); /* it was inside, and has no engine any more */
};

struct hub_guest {
	const struct hub_guest_hooks *hooks;
	struct kymo_hub *hub;
	const struct hub_threshold *threshold;
	struct hub_door *door; /* is there as long as its thread */
	atomic_bool is_inside; /* changed with the door's lock */
	atomic_uint refs;      /* its thread's, and one of each engine */
	int requests;          /* sockets */
	atomic_int events;     /* for the hub's thread alone */
	atomic_bool is_lost, has_ended;
	pthread_t thread;
	uint32_t serial; /* of what the hub's thread asks */
	struct hub_table table;
	struct hub_guest *next;
	struct hub_owner owner;
	_Alignas(struct hub_held) uint8_t memory[2][HUB_DATA_MAX]; /* of messages on the two sockets */
};

/* A new engine is the guest's. */
void hub_guest_take(struct hub_guest *guest, struct kymo_engine *engine);

/* Nothing more is asked of it or done for it; its thread lets go of its engines and ends. */
void hub_guest_lose(struct hub_guest *guest);

void hub_guest_get(struct hub_guest *guest);
void hub_guest_put(struct hub_guest *guest);

#endif
