/* The socket of a hub, and the processes that are connected to it. */
#ifndef KYMO_HUB_REMOTE_DOOR_H
#define KYMO_HUB_REMOTE_DOOR_H

#include "kymo/engine.h"

struct hub_door;

/* No client is served any more, and no client's engines are left. */
void hub_close_door(struct hub_door *door);

/* Whether a client is inside of a hub that has threads. If not, no client is let in any more. */
bool hub_is_shared(struct kymo_hub *hub);

/* The process of a connected client, or 0. */
pid_t hub_visitor(const struct kymo_hub *hub);

/* The process of a client of a hub of this process. 0: no client is connected, or its process is in another PID
 * namespace. */
pid_t kymo_hub_visitor(const struct kymo_hub *hub);

#endif
