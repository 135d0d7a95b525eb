/* What a spec means in one file. */
#include "probe/offline/offline_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "probe/code/code.h"
#include "probe/code/events.h"
#include "probe/code/parts.h"
#include "probe/code/resolver.h"
#include "probe/code/words.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_refusals.h"
#include "probe/offline/offline_state.h"
#include "probe/spec/spec.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/rseq.h"
#include "sym/sym.h"

/* ---- a site --------------------------------------------------------------------------------- */

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
	site->vaddr = vaddr;
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

static struct kymo_error *refuse_in_file(void *data, const struct probe_meaning *meaning, const char *location,
					 const char *reason)
{
	struct kymo_offline *offline = data;

	offline->states[meaning->spec].n_tried++;
	return offline_refuse(offline, meaning->spec, meaning->is_exact, offline->files.items[meaning->module].path,
			      location, reason);
}

static struct kymo_error *add_event(struct kymo_offline *offline, const struct probe_meaning *meaning, uint64_t offset,
				    const char *location, size_t *ret)
{
	struct offline_file *file = &offline->files.items[meaning->module];
	const struct kymo_spec *spec = &offline->specs[meaning->spec];
	kymo_cleanup_free char *name = probe_event_name(spec, location, !meaning->is_exact), *symbol = strdup(location);
	char build_id[PROBE_BUILD_ID_SIZE];
	struct kymo_probe_event event = {
		.kind = meaning->kind,
		.function_offset = meaning->kind == KYMO_EVENT_INSTRUCTION ? 0 : offset,
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
	error = probe_check_names(spec, build_id);
	if (!error)
		error = kymo_events_add(offline->events, &event, ret);
	if (!error)
		kymo_events_use(offline->events, *ret);
	return error;
}

static struct kymo_error *add_site(struct kymo_offline *offline, const struct probe_meaning *meaning, uint64_t vaddr,
				   const char *name, bool begins)
{
	struct offline_file *file = &offline->files.items[meaning->module];
	struct kymo_offline_site site = { .spec = meaning->spec,
					  .file = meaning->module,
					  .is_exact = meaning->is_exact };
	struct kymo_error *error;
	char reason[200] = "";

	error = check_site(file->module, vaddr, begins, &site, reason, sizeof(reason));
	if (error)
		return error;
	if (!site.length)
		return refuse_in_file(offline, meaning, name, reason);
	offline->states[meaning->spec].n_tried++;
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

/* The exits of the function at `vaddr`; with a reason where no uprobe may be at one of them. */
static struct kymo_error *find_exits(struct offline_file *file, uint64_t vaddr, const char *name,
				     struct probe_exits *ret)
{
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	struct kymo_error *error = need_code(file);
	struct kymo_offline_site site;

	*ret = (struct probe_exits){ .n = 0 };
	if (error)
		return error;
	if (function && function->start != vaddr) {
		snprintf(ret->reason, sizeof(ret->reason), "it is not the beginning of a function");
		return NULL;
	}
	error = probe_exits_init(file->module, file->code, vaddr, name, ret);
	for (size_t i = 0; !error && i < ret->n && !*ret->reason; i++)
		error = check_site(file->module, ret->items[i].vaddr, true, &site, ret->reason, sizeof(ret->reason));
	return error;
}

/* A site at the function itself, where its exits can't be told. It is worth a warning. `name` is the site's. */
static struct kymo_error *add_caller(struct kymo_offline *offline, const struct probe_meaning *meaning, uint64_t vaddr,
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

static struct kymo_error *add_exits(struct kymo_offline *offline, const struct probe_meaning *meaning, uint64_t vaddr,
				    const char *name, struct probe_exits *exits)
{
	const struct kymo_spec *spec = &offline->specs[meaning->spec];
	struct offline_file *file = &offline->files.items[meaning->module];
	const struct kymo_function *function = kymo_module_function_at(file->module, vaddr);
	struct kymo_offline_site site = { .spec = meaning->spec,
					  .file = meaning->module,
					  .is_exact = meaning->is_exact };
	const bool is_entry = function ? function->start == vaddr : spec->symbol && !spec->offset;
	struct kymo_error *error;
	uint64_t offset;

	if (*exits->reason && probe_spec_is_exact(spec) && is_entry)
		return add_caller(offline, meaning, vaddr, name, exits->reason);
	if (*exits->reason || kymo_module_vaddr_to_offset(file->module, vaddr, &offset))
		return refuse_in_file(offline, meaning, name, exits->reason);
	offline->states[meaning->spec].n_tried++;
	error = add_event(offline, meaning, offset, name, &site.event);
	for (size_t i = 0; i < exits->n && !error; i++) {
		site.kind = exits->items[i].is_tail ? KYMO_OFFLINE_TAIL : KYMO_OFFLINE_SITE;
		error = check_site(file->module, exits->items[i].vaddr, true, &site, exits->reason,
				   sizeof(exits->reason));
		if (!error && !kymo_vec_push(&offline->sites, site))
			error = &kymo_error_no_memory;
	}
	return error;
}

/* `function` is its own name, `name` the site's. */
static struct kymo_error *add_return(void *data, const struct probe_meaning *meaning, uint64_t vaddr,
				     const char *function, const char *name)
{
	struct kymo_offline *offline = data;
	struct probe_exits exits;
	struct kymo_error *error = find_exits(&offline->files.items[meaning->module], vaddr, function, &exits);

	if (!error)
		error = add_exits(offline, meaning, vaddr, name, &exits);
	probe_exits_deinit(&exits);
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
static struct kymo_error *add_inner_site(struct kymo_offline *offline, const struct probe_meaning *meaning,
					 uint64_t vaddr, const char *name)
{
	struct offline_file *file = &offline->files.items[meaning->module];
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
	return refuse_in_file(offline, meaning, name,
			      err ? "it is not known where the function's instructions begin"
				  : "it lies inside of an instruction");
}

/* ---- a spec in a file ------------------------------------------------------------------------ */

static struct kymo_error *get_code(void *data, size_t file, struct kymo_code **ret)
{
	struct kymo_offline *offline = data;
	struct kymo_error *error = need_code(&offline->files.items[file]);

	if (!error)
		*ret = offline->files.items[file].code;
	return error;
}

static void warn_file(void *data, const char *sentence)
{
	offline_warn(data, "%s", sentence);
}

static struct kymo_error *add_entry(void *data, const struct probe_meaning *meaning, uint64_t vaddr,
				    const char *location, enum probe_found found)
{
	return found == PROBE_FOUND_OFFSET ? add_inner_site(data, meaning, vaddr, location)
					   : add_site(data, meaning, vaddr, location, found == PROBE_FOUND_SYMBOL);
}

static const struct probe_resolver_ops ops = {
	.code = get_code, .warn = warn_file, .refuse = refuse_in_file, .add = add_entry, .add_return = add_return
};

struct kymo_error *offline_resolve(struct kymo_offline *offline, size_t spec_at, size_t file_at)
{
	const struct kymo_spec *spec = &offline->specs[spec_at];
	const struct probe_meaning meaning = {
		.spec = spec_at,
		.module = file_at,
		.kind = probe_spec_kind(spec),
		.is_exact = probe_spec_is_exact(spec),
	};

	offline->states[spec_at].is_met = true;
	if (offline->files.items[file_at].resolved[spec_at])
		return NULL;
	offline->files.items[file_at].resolved[spec_at] = true;
	return probe_resolve(
		&(struct probe_resolver){
			.ops = &ops, .data = offline, .spec = spec, .module = offline->files.items[file_at].module },
		&meaning, &offline->states[spec_at].is_met);
}
