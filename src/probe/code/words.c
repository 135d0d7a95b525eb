#include "probe/code/words.h"
#include "base/cleanup.h"
#include "sym/demangle.h"
#include "sym/functions.h"
#include "sym/glob.h"
#include "sym/module.h"
#include "sym/sym.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum kymo_event_kind probe_spec_kind(const struct kymo_spec *spec)
{
	if (spec->marker)
		return KYMO_EVENT_MARKER;
	if (spec->syscalls)
		return KYMO_EVENT_SYSCALL;
	if (spec->is_return)
		return KYMO_EVENT_RETURN;
	return spec->symbol && !spec->offset && !spec->every_instruction ? KYMO_EVENT_ENTRY : KYMO_EVENT_INSTRUCTION;
}

bool probe_spec_is_exact(const struct kymo_spec *spec)
{
	return !spec->marker && !spec->syscalls &&
	       (!spec->symbol || (!kymo_is_glob(spec->symbol) && !spec->every_instruction));
}

struct kymo_error *probe_spec_offset(const struct kymo_spec *spec, struct kymo_module *module, uint64_t *vaddr_ret)
{
	if (spec->offset < 0 || kymo_module_offset_to_vaddr(module, (uint64_t)spec->offset, vaddr_ret))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no code at file offset 0x%" PRIx64,
					 kymo_module_path(module), (uint64_t)spec->offset);
	return NULL;
}

void probe_describe(const struct kymo_spec *spec, struct kymo_module *module, uint64_t vaddr, char *out, size_t size)
{
	if (spec->source)
		snprintf(out, size, "%s", spec->source);
	else
		kymo_module_describe(module, vaddr, out, size);
}

void probe_build_id(const struct kymo_module *module, char out[PROBE_BUILD_ID_SIZE])
{
	size_t size;
	const uint8_t *bytes = kymo_module_build_id(module, &size);

	out[0] = '\0';
	for (size_t i = 0; i < size && i < KYMO_BUILD_ID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

char *probe_event_name(const struct kymo_spec *spec, const char *location, bool is_one_of_many)
{
	const char *file = spec->file ? strrchr(spec->file, '/') : NULL;
	const char *slash = spec->group ? "/" : "";
	char *name = NULL;
	int n;

	file = file ? file + 1 : spec->file;
	if (spec->event && is_one_of_many)
		n = asprintf(&name, "%s%s%s:%s", spec->group ? spec->group : "", slash, spec->event, location);
	else if (spec->event)
		n = asprintf(&name, "%s%s%s", spec->group ? spec->group : "", slash, spec->event);
	else if (spec->address)
		n = asprintf(&name, "%s", location);
	else
		n = asprintf(&name, "%s:%s%s", file, location, spec->is_return ? "%return" : "");
	return n < 0 ? NULL : name;
}

struct kymo_error *probe_check_names(const struct kymo_spec *spec, const char *build_id)
{
	if (!*spec->build_id || !strcmp(spec->build_id, build_id))
		return NULL;
	return kymo_error_create(
		KYMO_ERROR_NOT_FOUND,
		"the names in '%s' are of another build of %s than the process has (build-id %s, not %s)",
		kymo_spec_typed(spec), spec->file, spec->build_id, build_id);
}

/*
 * What the pad does for it. It does not know what the entry of its call has recorded, and has a fault in the place of
 * that: of a text a byte of 0, which is the empty one.
 */
static struct kymo_fetch fetch_of(const struct kymo_spec_arg *arg)
{
	static const struct kymo_form fault = {
		.n = 3,
		.ops = { { .code = KYMO_FORM_VALUE }, { .code = KYMO_FORM_VALUE }, { .code = KYMO_FORM_DIVIDE } },
	};

	if (!arg->is_of_entry)
		return arg->fetch;
	return (struct kymo_fetch){
		.kind = KYMO_FETCH_FORM,
		.type = arg->fetch.type == KYMO_TYPE_STRING ? KYMO_TYPE_U8 : arg->fetch.type,
		.form = &fault,
	};
}

void probe_event_arguments(const struct kymo_spec *spec, struct kymo_probe_event *event)
{
	for (size_t i = 0; i < spec->n_args; i++) {
		event->args[i] = fetch_of(&spec->args[i]);
		event->fields[i] = (struct kymo_event_field){
			.name = spec->args[i].name,
			.type = spec->args[i].fetch.type,
			.naming = spec->args[i].naming,
			.shape = spec->args[i].shape,
			.is_list = spec->args[i].is_list,
			.array_of = spec->args[i].fetch.array_of,
		};
	}
	event->n_args = event->n_fields = spec->n_args;
	event->filter = spec->filter;
	event->has_stack = spec->stack_size;
	event->has_stack_pointer = spec->is_paired;
	if (spec->stack_size)
		event->fields[event->n_fields++] =
			(struct kymo_event_field){ .name = (char *)KYMO_STACK_FIELD, .type = KYMO_TYPE_U32 };
	if (spec->is_paired) {
		event->args[event->n_args++] =
			(struct kymo_fetch){ .kind = KYMO_FETCH_STACK_POINTER, .type = KYMO_TYPE_X64 };
		event->fields[event->n_fields++] =
			(struct kymo_event_field){ .name = (char *)KYMO_STACK_POINTER_FIELD, .type = KYMO_TYPE_X64 };
	}
	if (spec->stack_frames)
		event->args[event->n_args++] = (struct kymo_fetch){ .kind = KYMO_FETCH_CHAIN,
								    .type = KYMO_TYPE_BYTES,
								    .limit = (uint16_t)(spec->stack_frames - 1) };
	else if (spec->stack_size)
		event->args[event->n_args++] = (struct kymo_fetch){ .kind = KYMO_FETCH_COPY,
								    .type = KYMO_TYPE_BYTES,
								    .limit = spec->stack_size };
}

void probe_location_name(const struct kymo_spec *spec, const char *symbol, char *out, size_t size)
{
	if (spec->offset)
		snprintf(out, size, "%s%c0x%" PRIx64, symbol, spec->offset < 0 ? '-' : '+',
			 spec->offset < 0 ? -(uint64_t)spec->offset : (uint64_t)spec->offset);
	else
		snprintf(out, size, "%s", symbol);
}

/* ---- overloads ------------------------------------------------------------------------------- */

#define OVERLOADS_SHOWN 3

bool probe_is_overloaded(const struct kymo_spec *spec, const struct kymo_symbol *const *found, size_t n)
{
	for (size_t i = 1; i < n && !kymo_is_glob(spec->symbol); i++)
		if (strcmp(found[i]->name, found[0]->name) != 0)
			return true;
	return false;
}

void probe_overloads_text(const struct kymo_spec *spec, const struct kymo_symbol *const *found, size_t n, char *out,
			  size_t size)
{
	int used = snprintf(
		out, size, "%s means %zu functions, and all are recorded; parameters or template arguments choose one:",
		spec->symbol, n);

	for (size_t i = 0; i < n && i < OVERLOADS_SHOWN && used >= 0 && (size_t)used < size; i++) {
		kymo_cleanup_free char *name = kymo_shown_apart(found[i]->name);

		used += snprintf(out + used, size - (size_t)used, "%s %s", i ? "," : "", name ? name : found[i]->name);
	}
	if (n > OVERLOADS_SHOWN && used >= 0 && (size_t)used < size)
		snprintf(out + used, size - (size_t)used, " and %zu more", n - OVERLOADS_SHOWN);
}

struct kymo_error *probe_check_overloads(const struct kymo_spec *spec, const struct kymo_symbol *const *found, size_t n)
{
	if (!spec->offset || !probe_is_overloaded(spec, found, n))
		return NULL;
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "%s means %zu functions, and the offset may be in any of them; write its "
				 "parameters or template arguments, as in %s",
				 spec->symbol, n, found[0]->name);
}

/* ---- what cannot be -------------------------------------------------------------------------- */

#define REASON_MAX 160

size_t probe_reason_shown(const char *reason)
{
	const char *end = strlen(reason) > REASON_MAX ? strstr(reason, "; ") : NULL;

	return end ? (size_t)(end - reason) : strlen(reason);
}
