/* Which engines there are. */
#ifndef KYMO_HUB_LIST_H
#define KYMO_HUB_LIST_H

#include "kymo/engine.h"

/* A row of the table in local.c; include/kymo/engine.h has the contract. */
int hub_local_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret);

/* kymo_hub_list(), without the first `from` */
int hub_list(struct kymo_hub *hub, pid_t id, size_t from, struct kymo_engine_info *infos, size_t max, size_t *n_ret);

#endif
