/* From specs to sites of modules. */
#include "probe/resolve/resolve.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/code/parts.h"
#include "probe/code/resolver.h"
#include "probe/code/words.h"
#include "probe/memory/sessions.h"
#include "probe/probes.h"
#include "probe/resolve/files.h"
#include "probe/resolve/markers.h"
#include "probe/resolve/syscalls.h"
#include "probe/site/refusals.h"
#include "probe/site/sites.h"
#include "probe/site/warning.h"
#include "probe/spec/spec.h"
#include "probe/threads/threads.h"
#include "probe/threads/watch.h"
#include "sym/files.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

struct kymo_error *probes_make_events(struct kymo_probes *probes, struct probe_site *site)
{
	const struct probe_module *module = &probes->modules.items[site->module];
	char build_id[PROBE_BUILD_ID_SIZE] = "", source[600];
	struct kymo_error *error = NULL;

	if (!module->jit)
		probe_build_id(module->module, build_id);
	for (size_t i = 0; i < site->requests.n && !error; i++) {
		struct probe_request *request = &site->requests.items[i];
		struct kymo_probe_event event = {
			.spec = &probes->wanted.specs[request->spec],
			.kind = request->kind,
			.name = request->name,
			.path = module->path,
			.symbol = request->location,
			.build_id = build_id,
		};

		if (request->is_refused || request->kind == KYMO_EVENT_SYSCALL)
			continue;
		if (module->jit)
			event.offset = request->vaddr;
		else if (kymo_module_vaddr_to_offset(module->module, request->vaddr, &event.offset))
			event.offset = 0;
		if (event.kind == KYMO_EVENT_ENTRY || event.kind == KYMO_EVENT_RETURN)
			event.function_offset = event.offset;
		if (request->marker)
			error = probe_marker_arguments(request->marker, &event, source, sizeof(source));
		else
			probe_event_arguments(event.spec, &event);
		if (!error)
			error = probe_check_names(event.spec, build_id);
		if (!error)
			error = kymo_events_add(probes->wanted.options.events, &event, &request->event);
		if (request->marker)
			probe_marker_arguments_deinit(&event);
	}
	return error;
}

/* ---- a site ---------------------------------------------------------------------------------- */

/* Request the event of `meaning` at `at`; `vaddr` is what the user named. */
static struct kymo_error *add_request(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t at,
				      uint64_t vaddr, const char *location, bool is_unknown)
{
	kymo_cleanup_free char *name =
		probe_event_name(&probes->wanted.specs[meaning->spec], location, !meaning->is_exact);
	const struct probe_request request = {
		.vaddr = vaddr, .is_unknown = is_unknown, .location = (char *)location, .name = name
	};

	return name ? probes_add_request(probes, meaning, at, &request) : &kymo_error_no_memory;
}

/* ---- what the resolver asks ------------------------------------------------------------------ */

static struct kymo_error *get_code(void *data, size_t module, struct kymo_code **ret)
{
	return probes_code(data, module, ret);
}

static void warn_process(void *data, const char *sentence)
{
	probes_warn(data, "%s", sentence);
}

static struct kymo_error *refuse_in_process(void *data, const struct probe_meaning *meaning, const char *location,
					    const char *reason)
{
	struct kymo_probes *probes = data;

	probes->per_spec.refused[meaning->spec].tried++;
	return probes_refuse_location(probes, meaning->spec, meaning->module, meaning->is_exact, location, reason);
}

static struct kymo_error *add_entry(void *data, const struct probe_meaning *meaning, uint64_t vaddr,
				    const char *location, enum probe_found found)
{
	struct kymo_probes *probes = data;
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, meaning->module, &code);

	if (error || (found == PROBE_FOUND_SWEPT && kymo_site_of(code->map, vaddr) != vaddr))
		return error;
	probes->per_spec.refused[meaning->spec].tried++;
	return add_request(probes, meaning, vaddr, vaddr, location, false);
}

static struct kymo_error *add_exits(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t vaddr,
				    const char *location, const struct probe_exits *exits)
{
	struct probe_meaning inexact = *meaning;
	struct kymo_error *error = NULL;

	if (!exits->has_end && meaning->is_exact)
		return probes_keep_error(probes, meaning->spec,
					 kymo_error_create(KYMO_ERROR_UNSAFE, "%s", exits->reason));
	inexact.is_exact = false;
	if (!exits->has_end)
		return refuse_in_process(probes, &inexact, location, "the file does not say where it ends");
	if (*exits->reason)
		return refuse_in_process(probes, meaning, location, exits->reason);
	probes->per_spec.refused[meaning->spec].tried++;
	for (size_t i = 0; i < exits->n && !error; i++)
		error = add_request(probes, meaning, exits->items[i].vaddr, vaddr, location, exits->items[i].is_tail);
	return error;
}

static struct kymo_error *add_return(void *data, const struct probe_meaning *meaning, uint64_t vaddr,
				     const char *function_name, const char *location)
{
	struct kymo_probes *probes = data;
	const struct kymo_spec *spec = &probes->wanted.specs[meaning->spec];
	struct kymo_module *module = probes->modules.items[meaning->module].module;
	const struct kymo_function *function = kymo_module_function_at(module, vaddr);
	struct probe_exits exits;
	struct kymo_code *code;
	struct kymo_error *error;

	if (!spec->symbol && (!function || function->start != vaddr))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no function of %s begins at file offset 0x%" PRIx64,
					 kymo_module_path(module), (uint64_t)spec->offset);
	error = probes_code(probes, meaning->module, &code);
	if (!error)
		error = probe_exits_init(module, code, vaddr, function_name, &exits);
	if (error)
		return error;
	error = add_exits(probes, meaning, vaddr, location, &exits);
	probe_exits_deinit(&exits);
	return error;
}

static const struct probe_resolver_ops ops = {
	.code = get_code, .warn = warn_process, .refuse = refuse_in_process, .add = add_entry, .add_return = add_return
};

/* ---- a spec ---------------------------------------------------------------------------------- */

static struct kymo_error *resolve_spec(struct kymo_probes *probes, size_t spec_at, size_t module_at)
{
	const struct kymo_spec *spec = &probes->wanted.specs[spec_at];
	struct probe_meaning meaning = {
		.spec = spec_at,
		.module = module_at,
		.kind = probe_spec_kind(spec),
		.is_exact = probe_spec_is_exact(spec),
	};

	if (spec->marker)
		return probes_resolve_marker(probes, &meaning);
	if (spec->syscalls)
		return probes_resolve_syscalls(probes, &meaning);
	if (spec->address)
		return NULL;
	if (!kymo_name_matches_file(spec->file, probes->modules.items[module_at].path,
				    kymo_module_soname(probes->modules.items[module_at].module)) &&
	    !probes_is_file(probes, spec_at, &probes->modules.items[module_at]))
		return NULL;
	return probe_resolve(
		&(struct probe_resolver){
			.ops = &ops, .data = probes, .spec = spec, .module = probes->modules.items[module_at].module },
		&meaning, &probes->per_spec.met[spec_at]);
}

struct kymo_error *probes_resolve_module(struct kymo_probes *probes, size_t module_at)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->wanted.n_specs && !error; i++) {
		error = resolve_spec(probes, i, module_at);
		if (!error || error->code != KYMO_ERROR_NOT_FOUND || !probes->wanted.options.lacks)
			continue;
		probes->wanted.options.lacks(i, error->message, probes->wanted.options.data);
		kymo_error_destroy(error);
		error = NULL;
	}
	return error;
}

struct kymo_error *probes_resolve_address(struct kymo_probes *probes, size_t spec_at, size_t module_at)
{
	const struct probe_meaning meaning = {
		.spec = spec_at, .module = module_at, .kind = KYMO_EVENT_INSTRUCTION, .is_exact = true
	};
	const struct kymo_jit *jit = probes->modules.items[module_at].jit;

	probes->per_spec.met[spec_at] = true;
	probes->per_spec.refused[spec_at].tried++;
	return add_request(probes, &meaning, jit->address, jit->address, jit->location, false);
}

void probes_resolve_deinit(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		probes_module_deinit(probes, &probes->modules.items[i]);
	for (size_t i = 0; i < probes->sites.n; i++)
		probes_site_deinit(&probes->sites.items[i]);
	kymo_vec_deinit(&probes->modules);
	kymo_vec_deinit(&probes->sites);
	kymo_vec_deinit(&probes->switches);
}
