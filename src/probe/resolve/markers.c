/* Markers and SDT probes of a process: what a glob means in one of its files. */
#include "probe/resolve/markers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "marker/fields.h"
#include "marker/marker.h"
#include "marker/match.h"
#include "marker/name.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/code/words.h"
#include "probe/coexist/text.h"
#include "probe/probes.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/switches.h"
#include "probe/site/warning.h"
#include "probe/spec/spec_marker.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

#define NAMES_SHOWN 5

static bool computes(const struct kymo_spec *spec)
{
	return spec->n_args || spec->filter;
}

/* What the spec computes of the arguments that are handed over at this location. */
static struct kymo_error *compute(const struct kymo_marker *marker, struct kymo_probe_event *event)
{
	const struct kymo_spec *spec = event->spec;
	struct kymo_spec own;
	struct kymo_error *error = kymo_spec_at_operands(spec, marker->fetches, marker->n_fetches, &own);

	if (error)
		return error;
	if (own.n_args)
		probe_event_arguments(spec, event);
	for (size_t i = 0; i < own.n_args; i++) {
		event->args[i] = own.args[i].fetch;
		event->fields[i].type = own.args[i].fetch.type;
		event->forms[i] = kymo_take(own.args[i].form);
	}
	event->forms[KYMO_EVENT_MAX_ARGS] = kymo_take(own.filter);
	event->filter = event->forms[KYMO_EVENT_MAX_ARGS];
	kymo_spec_deinit(&own);
	return NULL;
}

struct kymo_error *probe_marker_arguments(const struct kymo_marker *marker, struct kymo_probe_event *event,
					  char *source, size_t size)
{
	for (size_t i = 0; i < marker->n_fields; i++)
		event->fields[i] =
			(struct kymo_event_field){ .name = marker->fields[i].name, .type = marker->fields[i].type };
	memcpy(event->args, marker->fetches, sizeof(event->args));
	event->n_fields = marker->n_fields;
	event->n_args = marker->n_fetches;
	if (marker->file) {
		snprintf(source, size, "%s:%u", marker->file, marker->line);
		event->source = source;
		event->format = (char *)marker->format;
	}
	return computes(event->spec) ? compute(marker, event) : NULL;
}

void probe_marker_arguments_deinit(struct kymo_probe_event *event)
{
	for (size_t i = 0; i < kymo_countof(event->forms); i++)
		free(event->forms[i]);
}

/* Why a marker that can be recorded has nothing that the spec could compute with; or NULL. */
static const char *why_not_computed(const struct kymo_spec *spec, const struct kymo_marker *marker, char *out,
				    size_t size)
{
	if (!computes(spec))
		return NULL;
	if (!marker->is_sdt)
		return "it is one of kymo's own, whose fields are recorded as they are: filters and expressions are "
		       "for SDT probes";
	if (spec->n_operands_needed <= marker->n_fetches)
		return NULL;
	snprintf(out, size, "it has %zu argument%s, and no arg%d", marker->n_fetches, marker->n_fetches == 1 ? "" : "s",
		 spec->n_operands_needed - 1);
	return out;
}

static struct kymo_error *add_marker(struct kymo_probes *probes, const struct probe_meaning *meaning,
				     const struct kymo_marker *marker)
{
	struct probe_module *module = &probes->modules.items[meaning->module];
	kymo_cleanup_free char *name =
		kymo_marker_event_name(module->path, marker->is_sdt, marker->provider, marker->name);
	const struct kymo_spec *spec = &probes->wanted.specs[meaning->spec];
	char location[300], reason[100];
	const char *why_not =
		marker->why_not ? marker->why_not : why_not_computed(spec, marker, reason, sizeof(reason));
	struct probe_request request = {
		.vaddr = marker->location, .location = location, .name = name, .marker = marker
	};
	struct kymo_error *error;

	if (!name)
		return &kymo_error_no_memory;
	probes->per_spec.met[meaning->spec] = true;
	probes->per_spec.refused[meaning->spec].tried++;
	if (why_not)
		return probes_refuse_location(probes, meaning->spec, meaning->module, false, name, why_not);
	kymo_module_describe(module->module, marker->location, location, sizeof(location));
	error = probes_add_request(probes, meaning, marker->location, &request);
	return error || !marker->semaphore ? error : probes_add_semaphore(probes, meaning->module, marker);
}

/* The instructions of the function that was looked at last. */
struct known {
	const struct kymo_function *function;
	uint64_t *starts;
	size_t n;
};

static struct kymo_error *know(struct kymo_probes *probes, size_t module_at, const struct kymo_function *function,
			       struct known *known)
{
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module_at, &code);

	if (error || known->function == function)
		return error;
	free(known->starts);
	*known = (struct known){ .function = function };
	if (kymo_instructions_create(code->map, function->start, function->end, &known->starts, &known->n))
		*known = (struct known){ .function = function };
	return NULL;
}

/* A note may lie: its NOP may be the end of another instruction. What is in no known function can't be told. */
static struct kymo_error *begins_instruction(struct kymo_probes *probes, size_t module_at, uint64_t vaddr,
					     struct known *known, bool *ret)
{
	struct kymo_module *module = probes->modules.items[module_at].module;
	const struct kymo_function *function = kymo_module_function_at(module, vaddr);
	struct kymo_error *error = function ? know(probes, module_at, function, known) : NULL;

	*ret = false;
	if (error || !function)
		return error;
	size_t at = kymo_partition_point(i, known->n, known->starts[i] < vaddr);
	*ret = at < known->n && known->starts[at] == vaddr;
	return NULL;
}

static struct kymo_error *add_switch(struct kymo_probes *probes, const struct probe_meaning *meaning,
				     const struct kymo_marker_switch *wanted, struct known *known)
{
	bool is_one = true;
	struct kymo_error *error =
		wanted->site ? begins_instruction(probes, meaning->module, wanted->site, known, &is_one) : NULL;

	if (error)
		return error;
	if (is_one)
		return probes_add_switch(probes, meaning->module, wanted);
	probes->per_spec.refused[meaning->spec].tried++;
	return probes_refuse_location(probes, meaning->spec, meaning->module, false, wanted->name,
				      "its site is no instruction of a known function");
}

struct kymo_error *probes_resolve_marker(struct kymo_probes *probes, const struct probe_meaning *meaning)
{
	struct probe_module *module = &probes->modules.items[meaning->module];
	const char *glob = probes->wanted.specs[meaning->spec].marker, *soname = kymo_module_soname(module->module);
	const struct kymo_marker_list *list;
	struct known known = { .n = 0 };
	struct kymo_error *error = probe_cached_markers(module->file, &list);

	if (error && error->code == KYMO_ERROR_BAD_DATA) {
		probes_warn(probes, "%s; its markers are left out", error->message);
		kymo_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; !error && i < list->n; i++)
		if (kymo_marker_matches(glob, module->path, soname, list->items[i].provider, list->items[i].name))
			error = add_marker(probes, meaning, &list->items[i]);
	for (size_t i = 0; !error && i < list->n_switches; i++)
		if (!list->switches[i].must_stay_off &&
		    kymo_marker_matches(glob, module->path, soname, list->switches[i].provider, list->switches[i].name))
			error = add_switch(probes, meaning, &list->switches[i], &known);
	free(known.starts);
	return error;
}

/* ---- where they are -------------------------------------------------------------------------- */

/* The locations of SDT probes are single bytes, which no recording has to itself: a jump there is made of what is
 * behind them, too. */
static bool mark_module(const struct probe_module *module, const struct kymo_marker_list *list, struct probe_text *text)
{
	for (size_t i = 0; i < list->n_switches; i++) {
		uint64_t site = module->bias + list->switches[i].site;

		if (list->switches[i].site && (!probe_text_mark(text, TEXT_LOCKED, site, KYMO_JUMP_SIZE, true) ||
					       !probe_text_mark(text, TEXT_UNSTEADY, site, KYMO_JUMP_SIZE, true) ||
					       !probe_text_mark(text, TEXT_SWITCH, site, KYMO_JUMP_SIZE, true)))
			return false;
	}
	for (size_t i = 0; i < list->n; i++) {
		uint64_t location = module->bias + list->items[i].location;

		if (!list->items[i].is_sdt && (!probe_text_mark(text, TEXT_WANTED, location, 1, true) ||
					       !probe_text_mark(text, TEXT_UNSTEADY, location, KYMO_JUMP_SIZE, true)))
			return false;
	}
	return true;
}

bool probes_mark_markers(const struct kymo_probes *probes, struct probe_text *text)
{
	for (size_t i = 0; i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];
		const struct kymo_marker_list *list;
		bool has_none = module->is_gone || module->jit;
		struct kymo_error *error = has_none ? NULL : probe_cached_markers(module->file, &list);

		if (error || has_none)
			kymo_error_destroy(error); /* unreadable notes are no markers */
		else if (!mark_module(module, list, text))
			return false;
	}
	return true;
}

char *probes_marker_at(const struct kymo_probes *probes, size_t module, uint64_t address)
{
	const struct kymo_marker_list *list = probes->modules.items[module].file->markers;
	char *name = NULL;

	for (size_t i = 0; list && !name && i < list->n_switches; i++) {
		const struct kymo_marker_switch *item = &list->switches[i];

		if (item->site && address - probes->modules.items[module].bias - item->site < KYMO_JUMP_SIZE &&
		    asprintf(&name, "%s:%s", item->provider, item->name) < 0)
			return NULL;
	}
	return name;
}

/* ---- names that no marker has ------------------------------------------------------------------- */

/* "libc:setjmp, …": some that there are. */
static size_t tell_markers(struct kymo_probes *probes, char *out, size_t size)
{
	size_t n = 0, used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < probes->modules.n && n <= NAMES_SHOWN; i++) {
		const struct probe_cached *file = probes->modules.items[i].file;
		const struct kymo_marker_list *list = file ? file->markers : NULL;

		for (size_t k = 0; list && k < list->n && n <= NAMES_SHOWN && used < size; k++) {
			const struct kymo_marker *marker = &list->items[k];

			if (k && !strcmp(marker->name, list->items[k - 1].name))
				continue;
			if (n++ == NAMES_SHOWN)
				used += (size_t)snprintf(out + used, size - used, ", …");
			else
				used += (size_t)snprintf(out + used, size - used, "%s%s:%s", n > 1 ? ", " : "",
							 marker->provider, marker->name);
		}
	}
	return n;
}

struct kymo_error *probes_no_such_marker(struct kymo_probes *probes, const char *glob)
{
	const pid_t pid = probes->pid;
	char names[600];

	if (!tell_markers(probes, names, sizeof(names)))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "process %d has no marker '%s': none of its files has any", pid, glob);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "process %d has no marker '%s'; it has %s ('kymo list %d' shows all)", pid, glob,
				 names, pid);
}
