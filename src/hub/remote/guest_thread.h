/* At the hub: the thread of a process that is connected. */
#ifndef KYMO_HUB_REMOTE_GUEST_THREAD_H
#define KYMO_HUB_REMOTE_GUEST_THREAD_H

#include "kymo/engine.h"

struct hub_door;
struct hub_guest;
struct hub_threshold;

/* Serve what has connected. It is a client when it has greeted the hub. */
struct hub_guest *hub_guest_create(struct kymo_hub *hub, struct hub_door *door, const struct hub_threshold *threshold,
				   int socket);

#endif
