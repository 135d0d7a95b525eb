/*
 * What slots and gates say, and which sites have to change for it.
 *
 * A location's slots are set before its marker's sites are turned on, and cleared after they are off; threads that are
 * in a cold block meanwhile find something in both states. slots.call and slots.rings are read more than once by
 * compiled code, so neither becomes NULL again: they become something that does nothing.
 *
 * A site's gate is shared with `kymo record`, which comes from outside and stops all threads first. `busy` tells it
 * that this library has looked at `outside` and is changing the text: it lets go, and comes again. It can't see `busy`
 * of the portable form, whose text stays as it is: each side has bytes of its own there.
 */
#include "update.h"

#include <errno.h>

#include "dispatch.h"
#include "toggle.h"

#define BATCH 1024 /* sites; each batch has its three synchronizations */

static struct lib_marker *changed;
static struct lib_site *batch[BATCH];

/* ---- slots ----------------------------------------------------------------------------------- */

static void set_call(struct kymo_marker_slots *slots, void (*call)(void))
{
	__atomic_store_n(&slots->call, call, __ATOMIC_RELEASE);
}

/* `owner` is there before a function is called that reads it. */
static void set_slots(const struct lib_marker *marker)
{
	for (size_t i = 0; i < marker->n_locations; i++) {
		struct kymo_marker_slots *slots = marker->locations[i].slots;

		if (marker->n_probes || marker->is_recorded)
			__atomic_store_n(&slots->owner, (void *)marker, __ATOMIC_RELEASE);
		if (marker->n_probes)
			set_call(slots, kymo_lib_call);
		else if (__atomic_load_n(&slots->call, __ATOMIC_RELAXED))
			set_call(slots, kymo_lib_nothing);
	}
}

void kymo_lib_inherit(struct lib_marker *marker)
{
	for (size_t i = 0; i < marker->n_locations; i++) {
		struct kymo_marker_slots *slots = marker->locations[i].slots;
		if (__atomic_load_n(&slots->owner, __ATOMIC_RELAXED))
			__atomic_store_n(&slots->owner, marker, __ATOMIC_SEQ_CST); /* takes the one before out */
	}
	for (size_t i = 0; i < marker->n_sites; i++) {
		if (__atomic_load_n(&marker->sites[i].gate->inside, __ATOMIC_RELAXED))
			kymo_lib_changed(marker);
	}
}

int kymo_lib_record(struct lib_marker *marker, const struct kymo_marker_rings *rings, uint64_t event_id)
{
	if (!KYMO_LIB_HAS_INLINE || marker->n_locations == 0)
		return -ENODEV;
	for (size_t i = 0; i < marker->n_locations; i++) {
		struct kymo_marker_slots *slots = marker->locations[i].slots;

		__atomic_store_n(&slots->owner, marker, __ATOMIC_RELEASE);
		__atomic_store_n(&slots->event_id, event_id + i, __ATOMIC_RELEASE);
		__atomic_store_n(&slots->rings, rings, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&marker->is_recorded, true, __ATOMIC_RELAXED);
	kymo_lib_changed(marker);
	return 0;
}

void kymo_lib_record_end(struct lib_marker *marker, const struct kymo_marker_rings *idle)
{
	for (size_t i = 0; i < marker->n_locations && kymo_lib_is_usable(marker->module); i++) {
		struct kymo_marker_slots *slots = marker->locations[i].slots;
		if (__atomic_load_n(&slots->rings, __ATOMIC_RELAXED))
			__atomic_store_n(&slots->rings, idle, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&marker->is_recorded, false, __ATOMIC_RELAXED);
	kymo_lib_changed(marker);
}

void kymo_lib_silence(struct lib_marker *marker)
{
	for (size_t i = 0; i < marker->n_locations; i++) {
		struct kymo_marker_slots *slots = marker->locations[i].slots;
		if (!__atomic_load_n(&slots->owner, __ATOMIC_RELAXED))
			continue; /* not written to, so that its page stays as it is */
		if (__atomic_load_n(&slots->call, __ATOMIC_RELAXED))
			set_call(slots, kymo_lib_nothing);
		__atomic_store_n(&slots->owner, NULL, __ATOMIC_SEQ_CST);
	}
	for (size_t i = 0; i < marker->n_sites; i++) {
		if (!marker->sites[i].text && __atomic_load_n(&marker->sites[i].gate->inside, __ATOMIC_RELAXED))
			__atomic_store_n(&marker->sites[i].gate->inside, 0, __ATOMIC_SEQ_CST);
	}
}

/* ---- which markers --------------------------------------------------------------------------- */

void kymo_lib_changed(struct lib_marker *marker)
{
	if (marker->is_changed)
		return;
	marker->is_changed = true;
	marker->next_changed = changed;
	changed = marker;
}

void kymo_lib_unchanged(const struct lib_module *module)
{
	struct lib_marker **at = &changed;

	while (*at) {
		struct lib_marker *marker = *at;
		if (marker->module == module) {
			marker->is_changed = false;
			*at = marker->next_changed;
		} else {
			at = &marker->next_changed;
		}
	}
}

static bool is_wanted(const struct lib_marker *marker)
{
	return marker->n_probes || marker->is_recorded;
}

/* All that could be looked at are done; those of modules that must not be touched now wait for the next time. */
static void forget_changed(void)
{
	struct lib_marker **at = &changed;

	while (*at) {
		struct lib_marker *marker = *at;
		if (kymo_lib_is_usable(marker->module)) {
			marker->is_changed = false;
			*at = marker->next_changed;
		} else {
			at = &marker->next_changed;
		}
	}
}

/* ---- sites ----------------------------------------------------------------------------------- */

static bool is_wanted_outside(const struct lib_site *site)
{
	return __atomic_load_n(&site->gate->outside, __ATOMIC_SEQ_CST) != 0;
}

static void set_inside(struct lib_site *site, bool on)
{
	__atomic_store_n(&site->gate->inside, on, __ATOMIC_SEQ_CST);
}

/*
 * The first `n` sites of `batch`: their text changes, where kymo does not want it on anyway, then their gates say so. A
 * recorder that can't wait any longer lets go of a site that is busy and leaves its text alone: those are the first of
 * `batch` then. How many.
 */
static size_t toggle_once(size_t n, bool on, int *status)
{
	size_t n_texts = 0, n_left = 0;

	for (size_t i = 0; i < n; i++)
		__atomic_store_n(&batch[i]->gate->busy, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++) {
		struct lib_site *site = batch[i];
		site->error = 0;
		if (is_wanted_outside(site))
			continue;
		batch[i] = batch[n_texts];
		batch[n_texts++] = site;
	}
	int one = n_texts ? kymo_lib_toggle(batch, n_texts, on) : 0;
	*status = *status ? *status : one;
	for (size_t i = 0; i < n; i++) {
		if (!on || !batch[i]->error)
			set_inside(batch[i], on);
		__atomic_store_n(&batch[i]->gate->busy, 0, __ATOMIC_SEQ_CST);
	}
	for (size_t i = n_texts; i < n; i++) {
		if (!is_wanted_outside(batch[i]))
			batch[n_left++] = batch[i];
	}
	return n_left;
}

static int toggle_batch(size_t n, bool on)
{
	int status = 0;

	while (n)
		n = toggle_once(n, on, &status);
	return status;
}

/* Where the kernel's uprobe has put the NOP back a site that is on is turned on again. */
static bool has_to_change(const struct lib_site *site, bool on)
{
	return (__atomic_load_n(&site->gate->inside, __ATOMIC_SEQ_CST) != 0) != on ||
	       (on && site->text && kymo_lib_is_off(site));
}

/* The changed sites of all markers that are wanted, or of those that are not. */
static int toggle_all(bool on, bool stop_at_error)
{
	size_t n = 0;
	int status = 0;

	for (struct lib_marker *marker = changed; marker; marker = marker->next_changed) {
		if (!kymo_lib_is_usable(marker->module) || is_wanted(marker) != on)
			continue;
		for (size_t i = 0; i < marker->n_sites; i++) {
			struct lib_site *site = &marker->sites[i];
			if (!has_to_change(site, on))
				continue;
			if (!site->text) {
				set_inside(site, on);
				continue;
			}
			batch[n++] = site;
			if (n < BATCH)
				continue;
			int one = toggle_batch(n, on);
			n = 0;
			status = status ? status : one;
			if (status < 0 && stop_at_error)
				return status;
		}
	}
	int last = n ? toggle_batch(n, on) : 0;
	return status ? status : last;
}

static void set_changed_slots(void)
{
	for (struct lib_marker *marker = changed; marker; marker = marker->next_changed) {
		if (kymo_lib_is_usable(marker->module))
			set_slots(marker);
	}
}

int kymo_lib_update(bool all)
{
	if (!changed)
		return 0;
	set_changed_slots();
	int status = toggle_all(true, all);
	if (status < 0 && all)
		return status;
	toggle_all(false, false);
	forget_changed();
	return status;
}
