#include "report/locations.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"

static int compare_fields(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	if (a->n_fields != b->n_fields)
		return a->n_fields < b->n_fields ? -1 : 1;
	for (uint32_t i = 0; i < a->n_fields; i++) {
		int order = strcmp(a->fields[i].name, b->fields[i].name);

		if (order)
			return order;
		if (a->fields[i].type != b->fields[i].type)
			return a->fields[i].type < b->fields[i].type ? -1 : 1;
	}
	return 0;
}

/* 0 for locations of one marker. */
static int compare_markers(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	int order = strcmp(a->name, b->name);

	if (!order)
		order = kymo_text_compare(a->path, b->path);
	if (!order)
		order = kymo_text_compare(a->build_id, b->build_id);
	return order ? order : compare_fields(a, b);
}

/* Locations of one marker side by side, as they stand in the trace. */
static int compare_events(const void *a, const void *b)
{
	const struct kymo_ctf_event *x = *(const struct kymo_ctf_event *const *)a;
	const struct kymo_ctf_event *y = *(const struct kymo_ctf_event *const *)b;
	int order = compare_markers(x, y);

	return order ? order : x < y ? -1 : x > y;
}

static void join_locations(const struct kymo_ctf_trace *trace, struct location *locations,
			   const struct kymo_ctf_event *const *markers, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		size_t before = (size_t)(markers[i - 1] - trace->events), at = (size_t)(markers[i] - trace->events);

		if (compare_markers(markers[i - 1], markers[i]))
			continue;
		locations[before].next = at;
		locations[at].first = locations[before].first;
		locations[locations[at].first].n++;
	}
}

struct location *kymo_locations_create(const struct kymo_ctf_trace *trace, size_t *n_ret)
{
	struct location *locations = calloc(trace->n_events + 1, sizeof(*locations));
	kymo_cleanup_free const struct kymo_ctf_event **markers = NULL;
	size_t n_markers = 0, n = 0;

	markers = calloc(trace->n_events + 1, sizeof(struct kymo_ctf_event *));
	if (!locations || !markers) {
		free(locations);
		return NULL;
	}
	for (size_t i = 0; i < trace->n_events; i++) {
		locations[i] = (struct location){ .first = i, .next = NO_LOCATION, .n = 1 };
		if (trace->events[i].kind == KYMO_CTF_MARKER)
			markers[n_markers++] = &trace->events[i];
	}
	qsort(markers, n_markers, sizeof(struct kymo_ctf_event *), compare_events);
	join_locations(trace, locations, markers, n_markers);
	for (size_t i = 0; i < trace->n_events; i++)
		n += locations[i].first == i;
	*n_ret = n;
	return locations;
}
