/* Attaching engines, and detaching many. */
#ifndef KYMO_HUB_ATTACH_H
#define KYMO_HUB_ATTACH_H

#include "kymo/engine.h"

struct hub_attach;
struct hub_guest;

/* Rows of the table in local.c; include/kymo/engine.h has the contracts. */
int hub_local_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops, void *data,
		     struct kymo_engine **ret);
int hub_local_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			     void *data, unsigned int events, size_t *n_ret);
size_t hub_local_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, const void *data);
int hub_local_leave(struct kymo_hub *hub);

/* The same, for a guest too; flags and events have been checked. */
int hub_attach(struct kymo_hub *hub, struct hub_attach *attach);
int hub_attach_process(struct kymo_hub *hub, struct hub_attach *attach);

/* Whose engines to detach: all of the guest's, or those that match. */
struct hub_match {
	const struct hub_guest *guest;
	bool is_any;
	uint64_t ops_key, data_key;
};

/* Detach them all, and wait as kymo_engine_detach_all() does. How many they were. */
size_t hub_detach_all(struct kymo_hub *hub, const struct hub_match *match);

#endif
