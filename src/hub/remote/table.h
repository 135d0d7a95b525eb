/* Engines by their names. */
#ifndef KYMO_HUB_REMOTE_TABLE_H
#define KYMO_HUB_REMOTE_TABLE_H

#include <pthread.h>

#include "kymo/engine.h"

#define NAME_BUCKETS 1024u
#define HUB_GROUP_OF(name) ((name) >> 32) /* of engines that were attached to a process together (client.h) */

struct hub_table {
	pthread_mutex_t lock;
	struct kymo_engine *buckets[NAME_BUCKETS];
};

void hub_table_init(struct hub_table *table);
void hub_table_deinit(struct hub_table *table);
void hub_table_add(struct hub_table *table, struct kymo_engine *engine);

/* An item, with a reference for the caller; or NULL. An item without references is not found any more. */
struct kymo_engine *hub_table_find(struct hub_table *table, uint64_t name);

/* Take one out; it may not be there: NULL. References stay as they are. */
struct kymo_engine *hub_table_take(struct hub_table *table, uint64_t name);

/* Take this one out, though another may have its name. */
void hub_table_remove(struct hub_table *table, struct kymo_engine *engine);

/* Take any out, or NULL. */
struct kymo_engine *hub_table_take_any(struct hub_table *table);

#endif
