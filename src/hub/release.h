/* The end of a hub. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_RELEASE_H
#define KYMO_HUB_RELEASE_H

#include "kymo/engine.h"

#define HUB_RELEASE_MS 2000

/* Let go of all that are stopped or can be within `timeout_ms`. */
void hub_release_all(struct kymo_hub *hub, int timeout_ms);

#endif
