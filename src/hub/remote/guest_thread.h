/* At the hub: the thread of a process that is connected. */
#ifndef KYMO_HUB_REMOTE_GUEST_THREAD_H
#define KYMO_HUB_REMOTE_GUEST_THREAD_H

#include "kymo/engine.h"

struct hub_door;
struct hub_guest;

/* Serve a client that has connected. Its thread calls `left` when none of its engines is left. */
struct hub_guest *hub_guest_create(struct kymo_hub *hub, struct hub_door *door, void (*left)(struct hub_door *door),
				   int socket);

#endif
