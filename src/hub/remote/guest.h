/* At the hub: a process that is connected. */
#ifndef KYMO_HUB_REMOTE_GUEST_H
#define KYMO_HUB_REMOTE_GUEST_H

#include <pthread.h>
#include <stdatomic.h>

#include "hub/freeze/hold.h"
#include "hub/remote/message.h"
#include "hub/remote/table.h"

struct hub_door;

/* A new engine is a guest's; the last reference to it was put. */
void hub_guest_take(struct hub_guest *guest, struct kymo_engine *engine);
void hub_guest_release(struct kymo_engine *engine);

struct hub_guest {
	struct kymo_hub *hub;
	struct hub_door *door; /* is there as long as its thread */
	atomic_uint refs;      /* its thread's, and one of each engine */
	int requests;          /* sockets */
	atomic_int events;     /* for the hub's thread alone */
	atomic_bool is_lost, has_ended;
	pthread_t thread;
	uint32_t serial; /* of what the hub's thread asks */
	struct hub_table table;
	struct hub_guest *next;
	struct hub_holder holder;
	_Alignas(struct hub_held) uint8_t memory[2][HUB_DATA_MAX]; /* of messages on the two sockets */
};

/* Serve one that has connected. Takes the socket. NULL: no memory or thread for it. */
struct hub_guest *hub_guest_create(struct kymo_hub *hub, struct hub_door *door, int socket);

/* Nothing more is asked of it or done for it; its thread lets go of its engines and ends. */
void hub_guest_lose(struct hub_guest *guest);

void hub_guest_get(struct hub_guest *guest);
void hub_guest_put(struct hub_guest *guest);

#endif
