/* The events of a recording, whichever of its processes has them. */
#include "probe/code/events.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"
#include "probe/code/cache.h"
#include "probe/code/event_words.h"

struct kymo_events {
	KYMO_VEC(struct kymo_probe_event) items;
	struct kymo_index index; /* of `items` */
	struct probe_cache *cache;
	size_t syscalls; /* index of the event of system call 0, with those of the others after it */
};

struct kymo_error *kymo_events_create(struct kymo_events **ret)
{
	struct kymo_events *events = calloc(1, sizeof(*events));
	struct kymo_error *error;

	if (!events)
		return &kymo_error_no_memory;
	error = probe_cache_create(&events->cache);
	if (error) {
		free(events);
		return error;
	}
	*ret = events;
	return NULL;
}

static void event_deinit(struct kymo_probe_event *event)
{
	free(event->name);
	free(event->path);
	free(event->symbol);
	free(event->build_id);
	free(event->source);
	free(event->format);
	for (size_t i = 0; i < event->n_fields; i++) {
		free(event->fields[i].name);
		kymo_naming_release(event->fields[i].naming);
		kymo_shape_release(event->fields[i].shape);
	}
	for (size_t i = 0; i < kymo_countof(event->forms); i++)
		free(event->forms[i]);
}

void kymo_events_destroy(struct kymo_events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < events->items.n; i++)
		event_deinit(&events->items.items[i]);
	kymo_vec_deinit(&events->items);
	probe_cache_destroy(events->cache);
	kymo_index_deinit(&events->index);
	free(events);
}

struct probe_cache *probe_events_cache(struct kymo_events *events)
{
	return events->cache;
}

void probe_events_note_syscalls(struct kymo_events *events, size_t first)
{
	events->syscalls = first;
}

size_t probe_events_syscalls(const struct kymo_events *events)
{
	return events->syscalls;
}

const struct kymo_probe_event *kymo_events_items(const struct kymo_events *events, size_t *n_ret)
{
	*n_ret = events->items.n;
	return events->items.items;
}

void kymo_events_use(struct kymo_events *events, size_t index)
{
	events->items.items[index].is_used = true;
}

static uint64_t hash_event(const struct kymo_probe_event *event)
{
	uint64_t hash = kymo_hash_bytes(KYMO_HASH_FIRST, &event->spec, sizeof(event->spec));

	hash = kymo_hash_bytes(hash, &event->offset, sizeof(event->offset));
	hash = kymo_hash_text(hash, event->path);
	return kymo_hash_text(hash, event->symbol);
}

static bool are_same(const struct kymo_probe_event *a, const struct kymo_probe_event *b)
{
	return a->spec == b->spec && a->kind == b->kind && a->offset == b->offset && !strcmp(a->path, b->path) &&
	       !strcmp(a->symbol, b->symbol) && !strcmp(a->build_id, b->build_id);
}

/* The strings of `event` in `copy`, which is the same otherwise. */
static bool copy_strings(const struct kymo_probe_event *event, struct kymo_probe_event *copy)
{
	bool is_whole = true;

	copy->name = strdup(event->name);
	copy->path = strdup(event->path);
	copy->symbol = strdup(event->symbol);
	copy->build_id = strdup(event->build_id);
	copy->source = event->source ? strdup(event->source) : NULL;
	copy->format = event->format ? strdup(event->format) : NULL;
	for (size_t i = 0; i < event->n_fields; i++) {
		copy->fields[i].name = strdup(event->fields[i].name);
		kymo_naming_share(copy->fields[i].naming);
		kymo_shape_share(copy->fields[i].shape);
		is_whole &= copy->fields[i].name != NULL;
	}
	return is_whole && copy->name && copy->path && copy->symbol && copy->build_id &&
	       !event->source == !copy->source && !event->format == !copy->format;
}

struct kymo_error *kymo_events_add(struct kymo_events *events, const struct kymo_probe_event *event, size_t *ret)
{
	const struct kymo_probe_event *items = events->items.items;
	const uint64_t hash = hash_event(event);
	const uint32_t known = kymo_index_find(&events->index, hash, i, are_same(&items[i - 1], event));
	struct kymo_probe_event copy = *event;
	struct kymo_error *error;

	if (known) {
		*ret = known - 1;
		return NULL;
	}
	if (events->items.n >= KYMO_EVENT_ID_MAX - 1) /* no event has the last id (trace/packed.h) */
		return kymo_error_create(KYMO_ERROR_USAGE, "more than %u probes in one recording",
					 KYMO_EVENT_ID_MAX - 1);
	if (!kymo_index_reserve(&events->index, events->items.n, i, hash_event(&items[i - 1])))
		return &kymo_error_no_memory;
	copy.id = (uint32_t)events->items.n + 1;
	memset(copy.forms, 0, sizeof(copy.forms));
	error = copy_strings(event, &copy) ? probe_event_own_forms(event, &copy) : &kymo_error_no_memory;
	if (!error && !kymo_vec_push(&events->items, copy))
		error = &kymo_error_no_memory;
	if (error) {
		event_deinit(&copy);
		return error;
	}
	kymo_index_put(&events->index, hash, copy.id);
	*ret = copy.id - 1;
	return NULL;
}
