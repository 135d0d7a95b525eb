/* At the client: calls on another process' hub. */
#ifndef KYMO_HUB_REMOTE_CLIENT_CALLS_H
#define KYMO_HUB_REMOTE_CLIENT_CALLS_H

#include "kymo/engine.h"

/* Connect to the hub whose thread is `tid`. As kymo_hub_connect(). */
int hub_connect_to(pid_t tid, struct kymo_hub **ret);

#endif
