/* From specs to planned sites. */
#include "probe/resolve/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/exits.h"
#include "base/cleanup.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/jit.h"
#include "probe/code/modules.h"
#include "probe/code/parts.h"
#include "probe/code/targets.h"
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
			.spec = &probes->specs[request->spec],
			.kind = request->kind,
			.name = request->name,
			.path = module->path,
			.symbol = request->place,
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
			probe_marker_arguments(request->marker, &event, source, sizeof(source));
		else
			probe_event_arguments(event.spec, &event);
		error = probe_check_names(event.spec, build_id);
		if (!error)
			error = kymo_events_add(probes->options.events, &event, &request->event);
	}
	return error;
}

/* ---- a place --------------------------------------------------------------------------------- */

/* Wish for the event of `meaning` at `at`; `vaddr` is what the user named. */
static struct kymo_error *add_request(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t at,
				      uint64_t vaddr, char *place, bool is_unknown)
{
	kymo_cleanup_free char *name = probe_event_name(&probes->specs[meaning->spec], place, !meaning->exact);
	const struct probe_request request = { .vaddr = vaddr, .is_unknown = is_unknown, .place = place, .name = name };

	return name ? probes_add_request(probes, meaning, at, &request) : &kymo_error_no_memory;
}

/* ---- returns and single instructions --------------------------------------------------------- */

/* `name` is the function's own. */
static struct kymo_error *add_returns(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t vaddr,
				      const char *name, char *place)
{
	struct kymo_module *module = probes->modules.items[meaning->module].module;
	kymo_cleanup_free struct kymo_extent *parts = NULL;
	kymo_cleanup_free struct kymo_exit *exits = NULL;
	struct kymo_refusal refusal = { .vaddr = 0 };
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, meaning->module, &code);
	size_t n_parts, n = 0;
	int err;

	if (error)
		return error;
	error = probe_parts_create(module, vaddr, name, &parts, &n_parts);
	if (error && error->code != KYMO_ERROR_UNSAFE)
		return error;
	if (error && meaning->exact)
		return probes_keep_error(probes, meaning->spec, error);
	probes->refused[meaning->spec].tried++;
	if (error) {
		kymo_error_destroy(error);
		return probes_refuse_place(probes, meaning->spec, meaning->module, false, place,
					   "the file does not say where it ends");
	}
	err = kymo_exits_create(&code->code, code->map, parts, n_parts, &exits, &n, &refusal);
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err || !n)
		return probes_refuse_place(probes, meaning->spec, meaning->module, meaning->exact, place,
					   err ? refusal.reason : "it never returns");
	for (size_t i = 0; i < n && !error; i++)
		error = add_request(probes, meaning, exits[i].vaddr, vaddr, place, exits[i].is_tail);
	return error;
}

static struct kymo_error *add_instructions(struct kymo_probes *probes, const struct probe_meaning *meaning,
					   uint64_t vaddr)
{
	struct kymo_module *module = probes->modules.items[meaning->module].module;
	const struct kymo_function *function = kymo_module_function_at(module, vaddr);
	kymo_cleanup_free uint64_t *starts = NULL;
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, meaning->module, &code);
	char place[PROBE_PLACE_MAX];
	size_t n;
	int err;

	if (error)
		return error;
	kymo_module_describe(module, vaddr, place, sizeof(place));
	err = function ? kymo_instructions_create(code->map, function->start, function->end, &starts, &n) : -EPERM;
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err) {
		probes->refused[meaning->spec].tried++;
		return probes_refuse_place(probes, meaning->spec, meaning->module, meaning->exact, place,
					   "it is not known where its instructions begin");
	}
	for (size_t i = 0; i < n && !error; i++) {
		if (kymo_site_of(code->map, starts[i]) != starts[i])
			continue;
		probes->refused[meaning->spec].tried++;
		kymo_module_describe(module, starts[i], place, sizeof(place));
		error = add_request(probes, meaning, starts[i], starts[i], place, false);
	}
	return error;
}

/* ---- a spec ---------------------------------------------------------------------------------- */

static struct kymo_error *resolve_target(struct kymo_probes *probes, const struct probe_meaning *spec_meaning,
					 const struct probe_target *target)
{
	const struct kymo_spec *spec = &probes->specs[spec_meaning->spec];
	uint64_t vaddr = target->vaddr + (uint64_t)spec->offset;
	struct probe_meaning meaning = *spec_meaning;
	struct kymo_error *error;
	char place[PROBE_PLACE_MAX];

	meaning.exact &= !target->is_one_of_many;
	probe_target_place(spec, target, place, sizeof(place));
	if (target->refusal) {
		probes->refused[meaning.spec].tried++;
		return probes_refuse_place(probes, meaning.spec, meaning.module, meaning.exact, place, target->refusal);
	}
	error = probe_check_offset(spec, probes->modules.items[meaning.module].module, target->vaddr);
	if (error)
		return error;
	if (spec->every_instruction)
		return add_instructions(probes, &meaning, vaddr);
	if (spec->is_return)
		return add_returns(probes, &meaning, vaddr, target->function, place);
	probes->refused[meaning.spec].tried++;
	return add_request(probes, &meaning, vaddr, vaddr, place, false);
}

/* By address, so that sites are appended, not inserted. */
static struct kymo_error *resolve_targets(struct kymo_probes *probes, const struct probe_meaning *meaning,
					  const struct probe_targets *targets)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < targets->list.n && !error; i++)
		error = resolve_target(probes, meaning, &targets->list.items[i]);
	if (!error && *targets->shared)
		probes_warn(probes, PROBE_IS_SHARED, probes->specs[meaning->spec].text, targets->shared);
	return error;
}

static void tell_overloads(struct kymo_probes *probes, size_t spec, const struct kymo_symbol *const *found, size_t n)
{
	char text[2000];

	probe_overloads_text(&probes->specs[spec], found, n, text, sizeof(text));
	probes_warn(probes, "%s", text);
}

static struct kymo_error *resolve_symbol(struct kymo_probes *probes, const struct probe_meaning *spec_meaning)
{
	const struct kymo_spec *spec = &probes->specs[spec_meaning->spec];
	struct probe_meaning meaning = *spec_meaning;
	struct kymo_module *module = probes->modules.items[meaning.module].module;
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct probe_targets targets;
	struct kymo_code *code = NULL;
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_module_find(module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return probe_no_such_function(spec, module);
	error = probe_check_overloads(spec, found, n);
	if (error)
		return error;
	if (probe_is_overloaded(spec, found, n))
		tell_overloads(probes, spec_meaning->spec, found, n);
	meaning.exact &= !probe_is_overloaded(spec, found, n);
	error = probes_code(probes, meaning.module, &code);
	if (!error)
		error = probe_targets_init(spec, module, code, found, n, &targets);
	if (error)
		return error;
	error = resolve_targets(probes, &meaning, &targets);
	probe_targets_deinit(&targets);
	probes->met[meaning.spec] = true;
	return error;
}

static struct kymo_error *resolve_offset(struct kymo_probes *probes, const struct probe_meaning *meaning)
{
	const struct kymo_spec *spec = &probes->specs[meaning->spec];
	struct kymo_module *module = probes->modules.items[meaning->module].module;
	char place[PROBE_PLACE_MAX];
	uint64_t vaddr;
	struct kymo_error *error = probe_spec_offset(spec, module, &vaddr);

	if (error)
		return error;
	probes->met[meaning->spec] = true;
	probe_describe(spec, module, vaddr, place, sizeof(place));
	if (spec->is_return) {
		const struct kymo_function *function = kymo_module_function_at(module, vaddr);

		if (!function || function->start != vaddr)
			return kymo_error_create(KYMO_ERROR_NOT_FOUND,
						 "no function of %s begins at file offset 0x%" PRIx64,
						 kymo_module_path(module), (uint64_t)spec->offset);
		return add_returns(probes, meaning, vaddr, place, place);
	}
	probes->refused[meaning->spec].tried++;
	return add_request(probes, meaning, vaddr, vaddr, place, false);
}

static struct kymo_error *resolve_spec(struct kymo_probes *probes, size_t spec_at, size_t module_at)
{
	const struct kymo_spec *spec = &probes->specs[spec_at];
	struct probe_meaning meaning = {
		.spec = spec_at,
		.module = module_at,
		.kind = probe_spec_kind(spec),
		.exact = probe_spec_is_exact(spec),
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
	return spec->symbol ? resolve_symbol(probes, &meaning) : resolve_offset(probes, &meaning);
}

struct kymo_error *probes_resolve_module(struct kymo_probes *probes, size_t module_at)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->n_specs && !error; i++)
		error = resolve_spec(probes, i, module_at);
	return error;
}

struct kymo_error *probes_resolve_address(struct kymo_probes *probes, size_t spec_at, size_t module_at)
{
	const struct probe_meaning meaning = {
		.spec = spec_at, .module = module_at, .kind = KYMO_EVENT_PLACE, .exact = true
	};
	const struct kymo_jit *jit = probes->modules.items[module_at].jit;

	probes->met[spec_at] = true;
	probes->refused[spec_at].tried++;
	return add_request(probes, &meaning, jit->address, jit->address, jit->place, false);
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
