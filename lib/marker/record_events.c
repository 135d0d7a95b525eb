/*
 * What the trace says of a marker. An event is a location: each copy that the compiler has made has one, as in
 * recordings from outside.
 *
 * Ids are the process's, not the recording's: a thread that was interrupted in a cold block may have read the id of an
 * earlier recording. A library that is loaded, unloaded and loaded again has the ids that it had. So the table below
 * grows only, as do the types by id, which producers read.
 */
#include "record_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "marker/fields.h"
#include "marker/format.h"
#include "marker/name.h"
#include "record_image.h"
#include "record_slow.h"

#define LOCATION_NAME_SIZE 300

struct event {
	struct event *next; /* in the chain of its hash */
	char *key;          /* all that makes it the same */
	uint32_t id;        /* of its first location */
	uint64_t recording; /* the last one that knows it */
};

#define CHAINS 1024

static struct event *chains[CHAINS];
static uint32_t last_id;
static struct record_image image; /* of the module of the last marker */

/* ---- the table ------------------------------------------------------------------------------- */

static char *key_of(const struct lib_marker *marker)
{
	char *key;
	int n = asprintf(&key, "%s\n%s\n%#lx %zu %#x\n%s:%s\n%s:%u\n%s", image.path, image.build_id,
			 (unsigned long)((uintptr_t)marker->locations[0].code - marker->module->base),
			 marker->n_locations, marker->types, marker->provider, marker->name, marker->file, marker->line,
			 marker->format);

	return n < 0 ? NULL : key;
}

/* The types of `n` events from `id` on. -ENOMEM */
static int publish_types(uint32_t id, size_t n, uint32_t types)
{
	for (size_t i = id; i < id + n; i++) {
		uint32_t *chunk = (uint32_t *)kymo_record_types[i / RECORD_CHUNK];

		if (!chunk)
			chunk = calloc(RECORD_CHUNK, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		chunk[i % RECORD_CHUNK] = types;
		__atomic_store_n(&kymo_record_types[i / RECORD_CHUNK], chunk, __ATOMIC_RELEASE);
	}
	return 0;
}

static int find_or_add(const struct lib_marker *marker, struct event **ret)
{
	char *key = key_of(marker);
	struct event **chain, *event;

	if (!key)
		return -ENOMEM;
	chain = &chains[kymo_hash_text(KYMO_HASH_FIRST, key) % CHAINS];
	for (event = *chain; event; event = event->next) {
		if (strcmp(event->key, key) == 0) {
			free(key);
			*ret = event;
			return 0;
		}
	}
	event = marker->n_locations <= KYMO_EVENT_ID_MAX - last_id ? calloc(1, sizeof(*event)) : NULL;
	if (!event || publish_types(last_id + 1, marker->n_locations, marker->types)) {
		free(event);
		free(key);
		return marker->n_locations <= KYMO_EVENT_ID_MAX - last_id ? -ENOMEM : -ENOSPC;
	}
	*event = (struct event){ .next = *chain, .key = key, .id = last_id + 1 };
	last_id += (uint32_t)marker->n_locations;
	*chain = event;
	*ret = event;
	return 0;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

void kymo_record_news_destroy(struct record_news *news)
{
	while (news) {
		struct record_news *next = news->next;

		kymo_ctf_event_deinit(&news->event);
		free(news);
		news = next;
	}
}

static bool add_fields(const struct lib_marker *marker, struct kymo_ctf_event *event)
{
	struct kymo_marker_fields fields;

	if (kymo_marker_fields(marker->types, marker->format, &fields))
		return false;
	event->fields = calloc(fields.n + 1, sizeof(*event->fields));
	if (!event->fields)
		return false;
	for (size_t i = 0; i < fields.n; i++) {
		event->fields[i] = (struct kymo_ctf_field){ .name = strdup(fields.names[i]), .type = fields.types[i] };
		event->n_fields++;
		if (!event->fields[i].name)
			return false;
	}
	kymo_ctf_event_measure(event);
	return true;
}

static struct record_news *describe_event(const struct lib_marker *marker, size_t location, uint32_t id)
{
	uintptr_t code = (uintptr_t)marker->locations[location].code;
	struct record_news *news = calloc(1, sizeof(*news));
	struct kymo_ctf_event *event = &news->event;
	char symbol[LOCATION_NAME_SIZE];

	if (!news)
		return NULL;
	kymo_record_image_describe(&image, code, symbol, sizeof(symbol));
	*event = (struct kymo_ctf_event){
		.id = id,
		.name = kymo_marker_event_name(image.path, false, marker->provider, marker->name),
		.path = strdup(image.path),
		.offset = code - image.start + image.offset,
		.symbol = strdup(symbol),
		.build_id = strdup(image.build_id),
		.format = strdup(marker->format),
		.kind = KYMO_CTF_MARKER,
	};
	if (asprintf(&event->source, "%s:%u", marker->file, marker->line) < 0)
		event->source = NULL;
	if (event->name && event->path && event->symbol && event->build_id && event->format && event->source &&
	    add_fields(marker, event))
		return news;
	kymo_record_news_destroy(news);
	return NULL;
}

/* All locations, in their order, before `*news`. */
static int describe_all(const struct lib_marker *marker, uint32_t id, struct record_news **news)
{
	struct record_news *list = *news;

	for (size_t i = 0; i < marker->n_locations; i++) {
		struct record_news *one = describe_event(marker, i, id + (uint32_t)i);

		if (!one) {
			while (list != *news) {
				struct record_news *made = list;

				list = made->next;
				made->next = NULL;
				kymo_record_news_destroy(made);
			}
			return -ENOMEM;
		}
		one->next = list;
		list = one;
	}
	*news = list;
	return 0;
}

static int look_at_file(const struct lib_marker *marker)
{
	if (image.module == marker->module)
		return 0;
	kymo_record_events_settle();
	return kymo_record_image_create(marker->module, (uintptr_t)marker->locations[0].code, &image);
}

void kymo_record_events_settle(void)
{
	if (image.module)
		kymo_record_image_deinit(&image);
}

int kymo_record_event_ids(const struct lib_marker *marker, uint64_t recording, struct record_news **news, uint32_t *ret)
{
	struct event *event = NULL;
	int status = look_at_file(marker);

	if (status == 0)
		status = find_or_add(marker, &event);
	if (status == 0 && event->recording != recording)
		status = describe_all(marker, event->id, news);
	if (status < 0)
		return status;
	event->recording = recording;
	*ret = event->id;
	return 0;
}
