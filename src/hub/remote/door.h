/* The socket of a hub, and the processes that are connected to it. */
#ifndef KYMO_HUB_REMOTE_DOOR_H
#define KYMO_HUB_REMOTE_DOOR_H

#include "kymo/engine.h"

struct hub_door;

/* Nobody is served any more, and nobody's engines are left. NULL is allowed. */
void hub_close_door(struct hub_door *door);

/* Whether anybody is inside of a hub with threads; if not, nobody is let in any more. */
bool hub_is_shared(struct kymo_hub *hub);

/* The process of one that is connected, or 0. */
pid_t hub_visitor(const struct kymo_hub *hub);

/* The process of somebody who is connected to a hub of this process; 0: of nobody, or of one that can't be seen from
 * here. */
pid_t kymo_hub_visitor(const struct kymo_hub *hub);

#endif
