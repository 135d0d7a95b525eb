/* Hubs that trace by themselves. */
#ifndef KYMO_HUB_LOCAL_H
#define KYMO_HUB_LOCAL_H

#include "kymo/engine.h"

/*
 * The hub whose thread is the caller's: it has none of its own, and nothing happens but in hub_pump(), which the caller
 * comes to whenever a SIGCHLD is pending for it, and every 20 ms. Requests of other threads send it one. A thread has
 * one hub: it is destroyed by that thread as often as it was created. -ENOMEM.
 */
int hub_create_here(struct kymo_hub **ret);

#endif
