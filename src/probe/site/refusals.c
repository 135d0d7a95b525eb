/* What of the user's words has no safe location, and what is said of that. */
#include "probe/site/refusals.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "marker/fields.h"
#include "marker/name.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/code/words.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/site/warning.h"
#include "probe/spec/spec.h"
#include "proc/process.h"
#include "sym/functions.h"

#define REASONS_SHOWN 3

/* ---- a location, a marker, a site ------------------------------------------------------------ */

static void add_reason(struct probe_refused *refused, const char *location, const char *reason)
{
	const size_t room = sizeof(refused->reasons) - refused->now.length, shown = probe_reason_shown(reason);
	int wrote;

	if (refused->now.n_reasons++ >= REASONS_SHOWN)
		return;
	wrote = snprintf(refused->reasons + refused->now.length, room, "%s%s: %.*s%s", refused->now.length ? "; " : "",
			 location, (int)shown, reason, reason[shown] ? "; …" : "");
	refused->now.has_cut |= reason[shown];
	if (wrote > 0)
		refused->now.length += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

struct kymo_error *probes_refuse_location(struct kymo_probes *probes, size_t spec, size_t module, bool is_exact,
					  const char *location, const char *reason)
{
	struct probe_refused *refused = &probes->per_spec.refused[spec];

	if (!is_exact || probes->attempt.is_lenient) {
		refused->now.n++;
		add_reason(refused, location, reason);
	} else if (!refused->why && asprintf(&refused->why, "no probe can be put at %s%s of %s: %s", location,
					     probes->wanted.specs[spec].is_return ? "%return" : "",
					     probes->modules.items[module].path, reason) < 0) {
		refused->why = NULL;
		return &kymo_error_no_memory;
	}
	return NULL;
}

struct kymo_error *probes_keep_error(struct kymo_probes *probes, size_t spec, struct kymo_error *error)
{
	struct probe_refused *refused = &probes->per_spec.refused[spec];

	if (!refused->why)
		refused->why = strdup(error->message);
	kymo_error_destroy(error);
	return refused->why ? NULL : &kymo_error_no_memory;
}

struct kymo_error *probes_refuse_switch(struct kymo_probes *probes, const struct probe_switch *item)
{
	const struct probe_module *module = &probes->modules.items[item->module];
	kymo_cleanup_free char *name = kymo_marker_event_name(module->path, false, item->provider, item->name);
	char location[300], text[700];

	if (!name)
		return &kymo_error_no_memory;
	kymo_module_describe(module->module, item->address - module->bias, location, sizeof(location));
	if (item->target)
		snprintf(text, sizeof(text), "%s at %s", name, location);
	else /* the portable form has no site */
		snprintf(text, sizeof(text), "%s", name);
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		if (!probes_means_switch(probes, i, item))
			continue;
		probes->per_spec.refused[i].now.n_switches++;
		add_reason(&probes->per_spec.refused[i], text, item->corrupt);
	}
	return NULL;
}

static bool is_refused_elsewhere(const struct kymo_probes *probes, const struct probe_site *site,
				 const struct probe_request *request)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		for (size_t k = 0; k < probes->sites.items[i].requests.n; k++) {
			const struct probe_request *other = &probes->sites.items[i].requests.items[k];

			if (other->is_refused && other->kind == KYMO_EVENT_RETURN && other->spec == request->spec &&
			    other->vaddr == request->vaddr && probes->sites.items[i].module == site->module)
				return true;
		}
	return false;
}

struct kymo_error *probes_refuse_request(struct kymo_probes *probes, const struct probe_site *site,
					 struct probe_request *request, const char *reason)
{
	char text[700];

	request->is_refused = true;
	if (!request->marker)
		return probes_refuse_location(probes, request->spec, site->module, request->is_exact, request->location,
					      reason);
	snprintf(text, sizeof(text), "%s at %s", request->name, request->location);
	return probes_refuse_location(probes, request->spec, site->module, false, text, reason);
}

struct kymo_error *probes_refuse(struct kymo_probes *probes, struct probe_site *site, const char *reason)
{
	struct kymo_error *error = NULL;

	site->was_watch |= site->is_watch;
	site->is_watch = false;
	for (size_t i = 0; i < site->requests.n && !error; i++) {
		struct probe_request *request = &site->requests.items[i];

		if (request->is_refused)
			continue;
		if (request->kind == KYMO_EVENT_RETURN && is_refused_elsewhere(probes, site, request))
			request->is_refused = true; /* said already */
		else
			error = probes_refuse_request(probes, site, request, reason);
	}
	return error;
}

bool probes_refuse_together(struct kymo_probes *probes)
{
	bool any = false, more = false;

	for (size_t i = 0; i < probes->sites.n; i++)
		for (size_t k = 0; k < probes->sites.items[i].requests.n; k++)
			any |= probes->sites.items[i].requests.items[k].is_refused &&
			       probes->sites.items[i].requests.items[k].kind == KYMO_EVENT_RETURN;
	for (size_t i = 0; any && i < probes->sites.n; i++)
		for (size_t k = 0; k < probes->sites.items[i].requests.n; k++) {
			struct probe_request *request = &probes->sites.items[i].requests.items[k];

			if (request->is_refused || request->kind != KYMO_EVENT_RETURN ||
			    probes->sites.items[i].is_installed ||
			    !is_refused_elsewhere(probes, &probes->sites.items[i], request))
				continue;
			request->is_refused = true;
			more = true;
		}
	return more;
}

/* ---- from one try to the next ---------------------------------------------------------------- */

void probes_keep_refusals(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		for (size_t k = 0; k < probes->sites.items[i].requests.n; k++)
			probes->sites.items[i].requests.items[k].was_refused =
				probes->sites.items[i].requests.items[k].is_refused;
	for (size_t i = 0; i < probes->switches.n; i++) {
		probes->switches.items[i].was_refused = probes->switches.items[i].is_refused;
		probes->switches.items[i].corrupt = NULL;
	}
	probes->modified.n = 0;
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		probes->per_spec.refused[i].before = probes->per_spec.refused[i].now;
		probes->per_spec.refused[i].had_why = probes->per_spec.refused[i].why;
	}
}

static void forget_error(struct probe_refused *refused)
{
	free(refused->why);
	refused->why = NULL;
}

void probes_forget_errors(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		forget_error(&probes->per_spec.refused[i]);
}

void probes_forget_refusals(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++) {
		struct probe_site *site = &probes->sites.items[i];

		site->is_watch |= site->was_watch;
		site->is_revived = false; /* another recording may have been there first: planned anew */
		for (size_t k = 0; k < site->requests.n; k++)
			site->requests.items[k].is_refused = site->requests.items[k].was_refused;
	}
	for (size_t i = 0; i < probes->switches.n; i++)
		probes->switches.items[i].is_refused = probes->switches.items[i].was_refused;
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		probes->per_spec.refused[i].now = probes->per_spec.refused[i].before;
		probes->per_spec.refused[i].reasons[probes->per_spec.refused[i].now.length] = '\0';
		if (!probes->per_spec.refused[i].had_why)
			forget_error(&probes->per_spec.refused[i]);
	}
}

/* ---- what is said ---------------------------------------------------------------------------- */

static const char *kind_of(const struct kymo_spec *spec, bool is_one)
{
	if (spec->marker)
		return is_one ? "marker" : "markers";
	if (spec->syscalls)
		return is_one ? "system call instruction" : "system call instructions";
	if (spec->every_instruction)
		return is_one ? "instruction" : "instructions";
	return is_one ? "function" : "functions";
}

static char *none_left(const struct kymo_spec *spec, const struct probe_refused *refused)
{
	char *ret;
	int size;

	if (refused->tried == 1)
		size = asprintf(&ret, "the only %s that matches %s cannot be probed safely: %s", kind_of(spec, true),
				kymo_spec_typed(spec), refused->reasons);
	else
		size = asprintf(&ret, "none of the %zu %s that match %s can be probed safely: %s", refused->tried,
				kind_of(spec, false), kymo_spec_typed(spec), refused->reasons);
	return size < 0 ? NULL : ret;
}

/* Two specs may mean one location. */
static bool is_told_before(const struct kymo_probes *probes, size_t spec)
{
	for (size_t i = 0; i < spec; i++)
		if (probes->per_spec.refused[i].why &&
		    !strcmp(probes->per_spec.refused[i].why, probes->per_spec.refused[spec].why))
			return true;
	return false;
}

/* In place of errors where the rest goes on: each spec's own is told, once. */
static void tell_lacks(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		struct probe_refused *refused = &probes->per_spec.refused[i];

		if (refused->why)
			probes->wanted.options.lacks(i, refused->why, probes->wanted.options.data);
		forget_error(refused);
	}
}

struct kymo_error *probes_check_exact(struct kymo_probes *probes)
{
	kymo_cleanup_free char *sentences = NULL;
	size_t size, n = 0;
	FILE *out = open_memstream(&sentences, &size);

	if (!out)
		return &kymo_error_no_memory;
	if (probes->wanted.options.lacks)
		tell_lacks(probes);
	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		if (probes->per_spec.refused[i].why && !is_told_before(probes, i))
			fprintf(out, "%s%s", n++ ? "\n  " : "", probes->per_spec.refused[i].why);
	if (fclose(out))
		return &kymo_error_no_memory;
	return n ? kymo_error_create(KYMO_ERROR_UNSAFE, "%s", sentences) : NULL;
}

struct kymo_error *probes_check_refused(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->wanted.n_specs && !probes->attempt.is_lenient; i++) {
		struct probe_refused *refused = &probes->per_spec.refused[i];

		if (refused->why || !((refused->now.n && refused->now.n == refused->tried) ||
				      (refused->now.n_switches && !probes_has_live_marker(probes, i))))
			continue;
		refused->why = none_left(&probes->wanted.specs[i], refused);
		if (!refused->why)
			return &kymo_error_no_memory;
		if (probes->wanted.options.lacks)
			refused->now = (struct probe_refusals){ 0 }; /* this is all that is said of it */
	}
	return probes_check_exact(probes);
}

const char *kymo_probes_refusal(const struct kymo_probes *probes, size_t spec)
{
	return probes->per_spec.refused[spec].why;
}

/* A marker that can't be turned on has a location, which was tried. What was in before, in a library that has come
 * back, was not tried anew. */
static void tell_refused(const struct kymo_probes *probes, const struct kymo_spec *spec,
			 const struct probe_refused *refused)
{
	const char *more = refused->now.n_reasons > REASONS_SHOWN ? "; … ('kymo explain' tells the rest)"
			   : refused->now.has_cut                 ? " ('kymo explain' tells the rest)"
								  : "";
	size_t n = refused->now.n + refused->now.n_switches;
	const char *first = n > 1 ? "first: " : "";

	if (n <= refused->tried)
		probes_warn(probes, "skipped %zu of %zu %s that match %s and cannot be probed safely (%s%s%s)", n,
			    refused->tried, kind_of(spec, false), kymo_spec_typed(spec), first, refused->reasons, more);
	else if (n == 1)
		probes_warn(probes, "skipped 1 %s that matches %s and cannot be probed safely (%s%s)",
			    kind_of(spec, true), kymo_spec_typed(spec), refused->reasons, more);
	else
		probes_warn(probes, "skipped %zu %s that match %s and cannot be probed safely (%s%s%s)", n,
			    kind_of(spec, false), kymo_spec_typed(spec), first, refused->reasons, more);
}

void probes_tell_no_watch(struct kymo_probes *probes, enum probe_watched watches)
{
	static const char *const texts[] = {
		[PROBE_WATCH_LIBRARIES] =
			"libraries that process %d loads from now on are not noticed: its dynamic linker has no safe "
			"location for a probe",
		[PROBE_WATCH_HANDLERS] =
			"handlers of faults that process %d sets from now on are noticed late: its sigaction has no "
			"safe location for a probe",
		[PROBE_WATCH_LIMITS] =
			"process %d must not forbid itself to read the time stamp counter while it is recorded: it "
			"would die of its next probe, as its prctl has no safe location for a probe",
	};

	probes_warn(probes, texts[watches], kymo_process_pid(probes->process));
}

void probes_tell_refused(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		if (probes->sites.items[i].was_watch && !probes->sites.items[i].is_watch) {
			probes->sites.items[i].was_watch = false;
			probes_tell_no_watch(probes, probes->sites.items[i].watches);
		}
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		struct probe_refused refused = probes->per_spec.refused[i];

		probes->per_spec.refused[i] = (struct probe_refused){ .why = refused.why };
		if (refused.now.n || refused.now.n_switches)
			tell_refused(probes, &probes->wanted.specs[i], &refused);
	}
}
