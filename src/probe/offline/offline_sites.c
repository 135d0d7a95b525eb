/* What a spec means in one file. */
#include "probe/offline/offline_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/exits.h"
#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/parts.h"
#include "probe/code/targets.h"
#include "probe/code/words.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_refusals.h"
#include "probe/offline/offline_state.h"
#include "probe/spec/spec.h"

/* ---- a site --------------------------------------------------------------------------------- */

/* What a spec means in one file. */
struct meaning {
	size_t spec, file;
	enum kymo_event_kind kind;
	bool exact;
};

/* The code from `vaddr` to `end` (0: to the end of its section). */
static bool find_code(const struct kymo_module *module, uint64_t vaddr, uint64_t end, struct kymo_span *ret)
{
	const struct kymo_section *sections;
	size_t n;

	sections = kymo_module_sections(module, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = vaddr - sections[i].vaddr, size;

		if (!sections[i].executable || !sections[i].bytes || vaddr < sections[i].vaddr ||
		    at >= sections[i].size)
			continue;
		size = sections[i].size - at;
		if (end > vaddr && end - vaddr < size)
			size = end - vaddr;
		*ret = (struct kymo_span){ vaddr, sections[i].bytes + at, size };
		return true;
	}
	return false;
}

static bool is_in_sequence(const struct kymo_function *sequences, size_t n, uint64_t vaddr)
{
	for (size_t i = 0; i < n; i++)
		if (vaddr >= sequences[i].start && vaddr < sequences[i].end)
			return true;
	return false;
}

/*
 * Fill in offset and length of the instruction at `vaddr`; length 0 and a reason where no uprobe may be. `begins`: a
 * symbol says that one begins there.
 */
static struct kymo_error *check_site(struct kymo_module *module, uint64_t vaddr, bool begins,
				     struct kymo_offline_site *site, char *reason, size_t size)
{
	const struct kymo_function *function = kymo_module_function_at(module, vaddr), *sequences;
	struct kymo_error *error;
	struct kymo_span code;
	size_t n;
	int length;

	site->length = 0;
	error = kymo_module_rseq(module, &sequences, &n);
	if (error)
		return error;
	if (is_in_sequence(sequences, n, vaddr)) {
		snprintf(reason, size, "it is part of a restartable sequence, which the breakpoint would break");
	} else if (!function && !begins) {
		snprintf(reason, size,
			 "no function is known to be there, so it is not known where its instructions begin");
	} else if (kymo_module_vaddr_to_offset(module, vaddr, &site->offset) ||
		   !find_code(module, function ? function->start : vaddr, function ? function->end : 0, &code)) {
		snprintf(reason, size, "the file has no code there");
	} else {
		length = kymo_uprobe_check(&code, vaddr, reason, size);
		if (length > 0)
			site->length = (uint8_t)length;
	}
	return NULL;
}

static struct kymo_error *add_event(struct kymo_offline *offline, const struct meaning *meaning, uint64_t offset,
				    const char *location, size_t *ret)
{
	struct offline_file *file = &offline->files.items[meaning->file];
	const struct kymo_spec *spec = &offline->specs[meaning->spec];
	kymo_cleanup_free char *name = probe_event_name(spec, location, !meaning->exact), *symbol = strdup(location);
	char build_id[PROBE_BUILD_ID_SIZE];
	struct kymo_probe_event event = {
		.kind = meaning->kind,
		.function_offset = meaning->kind == KYMO_EVENT_PLACE ? 0 : offset,
		.name = name,
		.spec = spec,
		.path = file->path,
		.symbol = symbol,
		.build_id = build_id,
		.offset = offset,
	};
	struct kymo_error *error;

	if (!name || !symbol)
		return &kymo_error_no_memory;
	probe_build_id(file->module, build_id);
	probe_event_arguments(spec, &event);
	error = kymo_events_add(offline->events, &event, ret);
	if (!error)
		kymo_events_use(offline->events, *ret);
	return error;
}

static struct kymo_error *add_site(struct kymo_offline *offline, const struct meaning *meaning, uint64_t vaddr,
				   const char *name, bool begins)
{
	struct offline_file *file = &offline->files.items[meaning->file];
	struct kymo_offline_site site = { .spec = meaning->spec, .file = meaning->file, .exact = meaning->exact };
	struct kymo_error *error;
	char reason[200] = "";

	offline->states[meaning->spec].n_tried++;
	error = check_site(file->module, vaddr, begins, &site, reason, sizeof(reason));
	if (error)
		return error;
	if (!site.length)
		return offline_refuse(offline, meaning->spec, meaning->exact, file->path, name, reason);
	error = add_event(offline, meaning, site.offset, name, &site.event);
	/* Without decoding the file, only the starts of functions are known. */
	site.may_be_data = !begins && !(file->code && kymo_is_reached(file->code->map, vaddr));
	if (!error && !kymo_vec_push(&offline->sites, site))
		error = &kymo_error_no_memory;
	return error;
}

/* ---- returns --------------------------------------------------------------------------------- */

static struct kymo_error *need_code(struct offline_file *file)
{
	return file->code ? NULL : kymo_code_create(file->module, NULL, &file->code);
}

/* The exits of the function at `vaddr`, and what is wrong with the first that can't be had; "": all can. */
static struct kymo_error *find_exits(struct offline_file *file, uint64_t vaddr, const char *name,
				     struct kymo_exit **ret, size_t *n_ret, char *reason, size_t size)
{
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	kymo_cleanup_free struct kymo_extent *parts = NULL;
	struct kymo_refusal refusal = { .vaddr = 0 };
	struct kymo_error *error = need_code(file);
	struct kymo_offline_site site;
	size_t n_parts;
	int err;

	*reason = '\0';
	if (!error)
		error = probe_parts_create(file->module, vaddr, name, &parts, &n_parts);
	if (error && error->code == KYMO_ERROR_UNSAFE)
		snprintf(reason, size, "%s", error->message);
	else if (!error && function->start != vaddr)
		snprintf(reason, size, "it is not the beginning of a function");
	if (*reason) {
		kymo_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	err = kymo_exits_create(&file->code->code, file->code->map, parts, n_parts, ret, n_ret, &refusal);
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err || !*n_ret)
		snprintf(reason, size, "%s", err ? refusal.reason : "it never returns");
	for (size_t i = 0; i < *n_ret && !error && !*reason; i++)
		error = check_site(file->module, (*ret)[i].vaddr, true, &site, reason, size);
	return error;
}

/* A site at the function itself, where its exits can't be told. It is worth a warning. `name` is the site's. */
static struct kymo_error *add_caller(struct kymo_offline *offline, const struct meaning *meaning, uint64_t vaddr,
				     const char *name, const char *why)
{
	size_t n = offline->sites.n;
	struct kymo_error *error = add_site(offline, meaning, vaddr, name, true);

	if (error || offline->sites.n == n) /* refused */
		return error;
	offline->sites.items[offline->sites.n - 1].kind = KYMO_OFFLINE_CALLER;
	offline_warn(
		offline,
		"kymo cannot tell every location where %s returns (%s), so the kernel puts a return address of its own "
		"on the stack; an exception that is thrown through it ends the program",
		name, why);
	return NULL;
}

/* `function_name` is its own, `name` the site's. */
static struct kymo_error *add_return(struct kymo_offline *offline, const struct meaning *meaning, uint64_t vaddr,
				     const char *function_name, const char *name)
{
	const struct kymo_spec *spec = &offline->specs[meaning->spec];
	struct offline_file *file = &offline->files.items[meaning->file];
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	struct kymo_offline_site site = { .spec = meaning->spec, .file = meaning->file, .exact = meaning->exact };
	bool is_entry = function ? function->start == vaddr : spec->symbol && !spec->offset;
	kymo_cleanup_free struct kymo_exit *exits = NULL;
	struct kymo_error *error;
	char reason[300];
	uint64_t offset;
	size_t n = 0;

	error = find_exits(file, vaddr, function_name, &exits, &n, reason, sizeof(reason));
	if (error)
		return error;
	if (*reason && probe_spec_is_exact(spec) && is_entry)
		return add_caller(offline, meaning, vaddr, name, reason);
	offline->states[meaning->spec].n_tried++;
	if (*reason || kymo_module_vaddr_to_offset(file->module, vaddr, &offset))
		return offline_refuse(offline, meaning->spec, meaning->exact, file->path, name, reason);
	error = add_event(offline, meaning, offset, name, &site.event);
	for (size_t i = 0; i < n && !error; i++) {
		site.kind = exits[i].is_tail ? KYMO_OFFLINE_TAIL : KYMO_OFFLINE_SITE;
		error = check_site(file->module, exits[i].vaddr, true, &site, reason, sizeof(reason));
		if (!error && !kymo_vec_push(&offline->sites, site))
			error = &kymo_error_no_memory;
	}
	return error;
}

struct kymo_error *kymo_offline_are_read(struct kymo_offline *offline, bool *ret)
{
	bool are = false;

	for (size_t i = 0; i < offline->sites.n && !are; i++) {
		const struct kymo_offline_site *site = &offline->sites.items[i];
		struct offline_file *file = &offline->files.items[site->file];
		struct kymo_error *error = site->is_refused ? NULL : need_code(file);
		uint64_t vaddr;

		if (error)
			return error;
		are = !site->is_refused && !kymo_module_offset_to_vaddr(file->module, site->offset, &vaddr) &&
		      kymo_is_read(file->code->map, vaddr, site->length);
	}
	*ret = are;
	return NULL;
}

/* ---- sites within functions ----------------------------------------------------------------- */

/* What a sweep from the function's start takes for an instruction may be data, where not all of it is code. */
static struct kymo_error *add_inner_site(struct kymo_offline *offline, const struct meaning *meaning, uint64_t vaddr,
					 const char *name)
{
	struct offline_file *file = &offline->files.items[meaning->file];
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	kymo_cleanup_free uint64_t *starts = NULL;
	struct kymo_error *error;
	size_t n = 0, i = 0;
	int err;

	if (!function || function->start == vaddr)
		return add_site(offline, meaning, vaddr, name, function != NULL);
	error = need_code(file);
	if (error)
		return error;
	err = kymo_instructions_create(file->code->map, function->start, function->end, &starts, &n);
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	while (i < n && starts[i] != vaddr)
		i++;
	if (!err && i < n)
		return add_site(offline, meaning, vaddr, name, false);
	offline->states[meaning->spec].n_tried++;
	return offline_refuse(offline, meaning->spec, meaning->exact, file->path, name,
			      err ? "it is not known where the function's instructions begin"
				  : "it lies inside of an instruction");
}

/* ---- a spec in a file ------------------------------------------------------------------------ */

static struct kymo_error *add_instructions(struct kymo_offline *offline, const struct meaning *meaning, uint64_t vaddr)
{
	struct offline_file *file = &offline->files.items[meaning->file];
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	struct kymo_error *error = need_code(file);
	kymo_cleanup_free uint64_t *starts = NULL;
	char location[PROBE_PLACE_MAX];
	size_t n;
	int err;

	if (error)
		return error;
	kymo_module_describe(file->module, vaddr, location, sizeof(location));
	err = function ? kymo_instructions_create(file->code->map, function->start, function->end, &starts, &n)
		       : -EPERM;
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	if (err) {
		offline->states[meaning->spec].n_tried++;
		return offline_refuse(offline, meaning->spec, meaning->exact, file->path, location,
				      "it is not known where its instructions begin");
	}
	for (size_t i = 0; i < n && !error; i++) {
		kymo_module_describe(file->module, starts[i], location, sizeof(location));
		error = add_site(offline, meaning, starts[i], location, false);
	}
	return error;
}

static struct kymo_error *resolve_target(struct kymo_offline *offline, const struct meaning *spec_meaning,
					 const struct probe_target *target)
{
	const struct kymo_spec *spec = &offline->specs[spec_meaning->spec];
	uint64_t vaddr = target->vaddr + (uint64_t)spec->offset;
	struct meaning meaning = *spec_meaning;
	struct kymo_error *error;
	char location[PROBE_PLACE_MAX];

	meaning.exact &= !target->is_one_of_many;
	probe_target_place(spec, target, location, sizeof(location));
	if (target->refusal) {
		offline->states[meaning.spec].n_tried++;
		return offline_refuse(offline, meaning.spec, meaning.exact, offline->files.items[meaning.file].path,
				      location, target->refusal);
	}
	error = probe_check_offset(spec, offline->files.items[meaning.file].module, target->vaddr);
	if (error)
		return error;
	if (spec->every_instruction)
		return add_instructions(offline, &meaning, vaddr);
	if (spec->is_return)
		return add_return(offline, &meaning, vaddr, target->function, location);
	if (spec->offset)
		return add_inner_site(offline, &meaning, vaddr, location);
	return add_site(offline, &meaning, vaddr, location, true);
}

static struct kymo_error *resolve_targets(struct kymo_offline *offline, const struct meaning *meaning,
					  const struct probe_targets *targets)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < targets->list.n && !error; i++)
		error = resolve_target(offline, meaning, &targets->list.items[i]);
	if (!error && *targets->shared)
		offline_warn(offline, PROBE_IS_SHARED, offline->specs[meaning->spec].text, targets->shared);
	return error;
}

static void tell_overloads(struct kymo_offline *offline, const struct kymo_spec *spec,
			   const struct kymo_symbol *const *found, size_t n)
{
	char text[1300];

	probe_overloads_text(spec, found, n, text, sizeof(text));
	offline_warn(offline, "%s", text);
}

static struct kymo_error *resolve_symbol(struct kymo_offline *offline, const struct meaning *spec_meaning)
{
	const struct kymo_spec *spec = &offline->specs[spec_meaning->spec];
	struct offline_file *file = &offline->files.items[spec_meaning->file];
	struct meaning meaning = *spec_meaning;
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct probe_targets targets;
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_module_find(file->module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return probe_no_such_function(spec, file->module);
	error = probe_check_overloads(spec, found, n);
	if (error)
		return error;
	if (probe_is_overloaded(spec, found, n))
		tell_overloads(offline, spec, found, n);
	meaning.exact &= !probe_is_overloaded(spec, found, n);
	if (probe_has_indirect(found, n))
		error = need_code(file);
	if (!error)
		error = probe_targets_init(spec, file->module, file->code, found, n, &targets);
	if (error)
		return error;
	error = resolve_targets(offline, &meaning, &targets);
	probe_targets_deinit(&targets);
	return error;
}

static struct kymo_error *resolve_offset(struct kymo_offline *offline, const struct meaning *meaning)
{
	const struct kymo_spec *spec = &offline->specs[meaning->spec];
	struct kymo_module *module = offline->files.items[meaning->file].module;
	char location[PROBE_PLACE_MAX];
	uint64_t vaddr;
	struct kymo_error *error = probe_spec_offset(spec, module, &vaddr);

	if (error)
		return error;
	probe_describe(spec, module, vaddr, location, sizeof(location));
	if (spec->is_return)
		return add_return(offline, meaning, vaddr, location, location);
	return add_inner_site(offline, meaning, vaddr, location);
}

struct kymo_error *offline_resolve(struct kymo_offline *offline, size_t spec_at, size_t file_at)
{
	const struct kymo_spec *spec = &offline->specs[spec_at];
	const struct meaning meaning = {
		.spec = spec_at,
		.file = file_at,
		.kind = probe_spec_kind(spec),
		.exact = probe_spec_is_exact(spec),
	};

	offline->states[spec_at].is_met = true;
	if (offline->files.items[file_at].resolved[spec_at])
		return NULL;
	offline->files.items[file_at].resolved[spec_at] = true;
	return spec->symbol ? resolve_symbol(offline, &meaning) : resolve_offset(offline, &meaning);
}
