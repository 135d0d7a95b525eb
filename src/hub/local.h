/* Hubs that trace by themselves. */
#ifndef KYMO_HUB_LOCAL_H
#define KYMO_HUB_LOCAL_H

#include "kymo/engine.h"

/*
 * The hub whose thread is the caller's: it has no thread of its own. All work is done in hub_pump(), which the caller
 * calls when a SIGCHLD is pending, and every 20 ms. Requests of other threads send a SIGCHLD. A thread has one hub: it
 * is destroyed by that thread as often as it was created. -ENOMEM.
 */
int hub_create_here(struct kymo_hub **ret);

#endif
