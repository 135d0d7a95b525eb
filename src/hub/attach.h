/* Attaching engines, and detaching many. */
#ifndef KYMO_HUB_ATTACH_H
#define KYMO_HUB_ATTACH_H

#include "kymo/engine.h"

struct hub_attach;
struct hub_guest;

/* kymo_engine_attach(), kymo_engine_attach_process(); flags and events have been checked. */
int hub_attach(struct kymo_hub *hub, struct hub_attach *attach);
int hub_attach_process(struct kymo_hub *hub, struct hub_attach *attach);

/* Whose engines to detach: all of the guest's, or those that match. */
struct hub_match {
	const struct hub_guest *guest;
	bool is_any;
	uint64_t ops_key, data_key;
};

/* kymo_engine_detach_all() */
size_t hub_detach_all(struct kymo_hub *hub, const struct hub_match *match);

#endif
