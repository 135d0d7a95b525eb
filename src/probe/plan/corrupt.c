/*
 * Markers that stay off although they are wanted: what turns them on can't be changed, or no location after it can be
 * had. The others are recorded; a marker of which only half could be put in is not turned on.
 *
 * A site of the hot path is known to belong to locations by the marker's name alone: which of a marker's copies leads
 * to which location no note says. So the copies of a marker rest together.
 */
#include "probe/plan/corrupt.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "marker/marker.h"
#include "probe/code/modules.h"
#include "probe/coexist/modified.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/snapshot/snapshot.h"

/* ---- what can't be turned on ----------------------------------------------------------------- */

/* An SDT probe that cannot be turned on has nothing to record. Several may have one counter. */
static struct kymo_error *refuse_counted(struct kymo_probes *probes, const struct probe_switch *item)
{
	uint64_t bias = probes->modules.items[item->module].bias;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];

		if (site->module != item->module || site->is_installed || site->is_retired)
			continue;
		for (size_t k = 0; k < site->requests.n && !error; k++) {
			struct probe_request *request = &site->requests.items[k];

			if (!request->is_refused && request->marker && request->marker->semaphore &&
			    bias + request->marker->semaphore == item->counter)
				error = probes_refuse_request(probes, site, request, item->corrupt);
		}
	}
	return error;
}

struct kymo_error *probes_refuse_switches(struct kymo_probes *probes, const struct probe_snapshot *snapshot)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->switches.n && !error; i++) {
		struct probe_switch *item = &probes->switches.items[i];

		if (!item->corrupt || item->is_refused || item->is_installed || item->is_retired ||
		    !probes_is_still_mapped(probes, &snapshot->maps, item->address))
			continue;
		error = probes_look_at_switch(probes, item, &snapshot->bytes, &item->corrupt);
		if (error || !item->corrupt) /* it is as it should be again */
			continue;
		item->is_refused = true;
		error = item->is_gate ? probes_refuse_switch(probes, item) : refuse_counted(probes, item);
	}
	return error;
}

/* ---- what no location is behind of ------------------------------------------------------------ */

/* What a switch and the locations after it have in common: the marker's name, or the counter. */
struct key {
	size_t module;
	uint64_t counter; /* 0: a gate */
	const char *provider, *name;
	struct probe_switch *item;
	bool is_live;
};

static int compare_sites(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->counter != y->counter)
		return x->counter < y->counter ? -1 : 1;
	if (x->counter)
		return 0;
	order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->provider, y->provider);
}

static struct kymo_error *gather_keys(struct kymo_probes *probes, struct key **ret, size_t *n_ret)
{
	struct key *keys = calloc(probes->switches.n + 1, sizeof(*keys));
	size_t n = 0;

	if (!keys)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < probes->switches.n; i++) {
		struct probe_switch *item = &probes->switches.items[i];

		if (!item->is_installed && !item->is_retired && !item->is_refused)
			keys[n++] = (struct key){ item->module,   item->is_gate ? 0 : item->counter,
						  item->provider, item->name,
						  item,           false };
	}
	if (n)
		qsort(keys, n, sizeof(*keys), compare_sites);
	*ret = keys;
	*n_ret = n;
	return NULL;
}

/* All that are alike are live when the first is. */
static void note_live(struct key *keys, size_t n, const struct key *key)
{
	size_t at = kymo_partition_point(i, n, compare_sites(&keys[i], key) < 0);

	for (; at < n && !keys[at].is_live && !compare_sites(&keys[at], key); at++)
		keys[at].is_live = true;
}

static void note_places(const struct kymo_probes *probes, struct key *keys, size_t n)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		const struct probe_site *site = &probes->sites.items[i];
		uint64_t bias = probes->modules.items[site->module].bias;

		for (size_t k = 0; k < site->requests.n; k++) {
			const struct kymo_marker *marker = site->requests.items[k].marker;
			struct key key = { .module = site->module };

			if (!marker || site->requests.items[k].is_refused || site->is_retired ||
			    (marker->is_sdt && !marker->semaphore))
				continue;
			key.counter = marker->is_sdt ? bias + marker->semaphore : 0;
			key.provider = marker->provider;
			key.name = marker->name;
			note_live(keys, n, &key);
		}
	}
}

struct kymo_error *probes_rest_switches(struct kymo_probes *probes)
{
	kymo_cleanup_free struct key *keys = NULL;
	struct kymo_error *error;
	size_t n = 0;

	if (!probes->switches.n)
		return NULL;
	error = gather_keys(probes, &keys, &n);
	if (error)
		return error;
	note_places(probes, keys, n);
	for (size_t i = 0; i < n; i++)
		keys[i].item->is_refused = !keys[i].is_live;
	return NULL;
}
