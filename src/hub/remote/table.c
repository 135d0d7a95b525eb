#include "hub/engine.h"
#include "hub/remote/table.h"

void hub_table_init(struct hub_table *table)
{
	pthread_mutex_init(&table->lock, NULL);
}

void hub_table_deinit(struct hub_table *table)
{
	pthread_mutex_destroy(&table->lock);
}

static struct kymo_engine **bucket_of(struct hub_table *table, uint64_t name)
{
	return &table->buckets[(HUB_GROUP_OF(name) + name) % NAME_BUCKETS];
}

void hub_table_add(struct hub_table *table, struct kymo_engine *engine)
{
	struct kymo_engine **bucket = bucket_of(table, engine->name);

	pthread_mutex_lock(&table->lock);
	engine->in_names = *bucket;
	*bucket = engine;
	pthread_mutex_unlock(&table->lock);
}

static bool get_unless_gone(struct kymo_engine *engine)
{
	unsigned int refs = atomic_load(&engine->refs);

	while (refs)
		if (atomic_compare_exchange_weak(&engine->refs, &refs, refs + 1))
			return true;
	return false;
}

struct kymo_engine *hub_table_find(struct hub_table *table, uint64_t name)
{
	struct kymo_engine *engine;

	pthread_mutex_lock(&table->lock);
	engine = *bucket_of(table, name);
	while (engine && engine->name != name)
		engine = engine->in_names;
	if (engine && !get_unless_gone(engine))
		engine = NULL;
	pthread_mutex_unlock(&table->lock);
	return engine;
}

static struct kymo_engine *take_engine(struct kymo_engine **at)
{
	struct kymo_engine *engine = *at;

	if (engine)
		*at = engine->in_names;
	return engine;
}

struct kymo_engine *hub_table_take(struct hub_table *table, uint64_t name)
{
	struct kymo_engine **at = bucket_of(table, name), *engine;

	pthread_mutex_lock(&table->lock);
	while (*at && (*at)->name != name)
		at = &(*at)->in_names;
	engine = take_engine(at);
	pthread_mutex_unlock(&table->lock);
	return engine;
}

void hub_table_remove(struct hub_table *table, struct kymo_engine *engine)
{
	struct kymo_engine **at = bucket_of(table, engine->name);

	pthread_mutex_lock(&table->lock);
	while (*at && *at != engine)
		at = &(*at)->in_names;
	take_engine(at);
	pthread_mutex_unlock(&table->lock);
}

struct kymo_engine *hub_table_take_any(struct hub_table *table)
{
	struct kymo_engine *engine = NULL;

	pthread_mutex_lock(&table->lock);
	for (size_t i = 0; i < NAME_BUCKETS && !engine; i++)
		engine = take_engine(&table->buckets[i]);
	pthread_mutex_unlock(&table->lock);
	return engine;
}
