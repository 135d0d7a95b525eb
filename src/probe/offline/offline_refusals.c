/* Locations that cannot be probed without a process, and what is told of them. */
#include "probe/offline/offline_refusals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probe/code/events.h"
#include "probe/code/words.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_state.h"
#include "probe/spec/spec.h"

#define REASONS_SHOWN 3

void offline_warn(struct kymo_offline *offline, const char *format, ...)
{
	char sentence[1400];
	va_list args;

	if (!offline->warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	offline->warn(sentence, offline->data);
}

struct kymo_error *offline_refuse(struct kymo_offline *offline, size_t spec, bool is_exact, const char *path,
				  const char *location, const char *reason)
{
	struct offline_spec *state = &offline->states[spec];
	const size_t used = strlen(state->reasons), shown = probe_reason_shown(reason);

	if (is_exact)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "no probe can be put at %s%s of %s: %s", location,
					 offline->specs[spec].is_return ? "%return" : "", path, reason);
	if (state->n_refused++ < REASONS_SHOWN)
		snprintf(state->reasons + used, sizeof(state->reasons) - used, "%s%s: %.*s%s", used ? "; " : "",
			 location, (int)shown, reason, reason[shown] ? "; …" : "");
	return NULL;
}

struct kymo_error *kymo_offline_refuse(struct kymo_offline *offline, size_t site, const char *reason)
{
	struct kymo_offline_site *refused = &offline->sites.items[site];
	const struct kymo_probe_event *events;
	size_t n;

	if (refused->is_refused)
		return NULL;
	/* A return without some of its exits would be worse than none. */
	for (size_t i = 0; i < offline->sites.n; i++)
		if (offline->sites.items[i].event == refused->event)
			offline->sites.items[i].is_refused = true;
	events = kymo_events_items(offline->events, &n);
	return offline_refuse(offline, refused->spec, refused->is_exact, offline->files.items[refused->file].path,
			      events[refused->event].symbol, reason);
}

struct kymo_error *kymo_offline_tell_refused(struct kymo_offline *offline)
{
	for (size_t i = 0; i < offline->n_specs; i++) {
		struct offline_spec *state = &offline->states[i];
		const struct kymo_spec *spec = &offline->specs[i];
		const char *what = spec->every_instruction ? "instructions" : "functions";

		if (state->n_refused && state->n_refused == state->n_tried)
			return kymo_error_create(KYMO_ERROR_UNSAFE,
						 "none of the %zu %s that match %s can be probed safely: %s",
						 state->n_tried, what, kymo_spec_typed(spec), state->reasons);
		if (state->n_refused)
			offline_warn(offline,
				     "skipped %zu of %zu %s that match %s and cannot be probed safely (%s%s%s)",
				     state->n_refused, state->n_tried, what, kymo_spec_typed(spec),
				     state->n_refused > 1 ? "first: " : "", state->reasons,
				     state->n_refused > REASONS_SHOWN ? "; …" : "");
		state->n_refused = state->n_tried = 0;
		state->reasons[0] = '\0';
	}
	return NULL;
}
