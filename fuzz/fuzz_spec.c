/*
 * Any bytes as a SPEC. What is accepted keeps the promises of probe/spec/spec.h; what is refused is a USAGE error whose
 * caret line stands below the text.
 */
#include "arch/writes.h"
#include "fuzz.h"
#include "probe/spec/spec_marker.h"

static void check_form(const struct kymo_spec *spec, const struct kymo_form *form)
{
	check(kymo_form_check(form, KYMO_FETCH_REGISTERS, KYMO_FETCH_STACK_MAX));
	check(spec->is_return || !kymo_form_has(form, KYMO_FORM_RETVAL, NULL));
}

/* Strings and bytes are read from memory, so many at most; everything else is a number. */
static void check_type(const struct kymo_fetch *fetch)
{
	if (kymo_type_is_integer(fetch->type) || kymo_type_is_real(fetch->type))
		return;
	check(fetch->type == KYMO_TYPE_STRING || fetch->type == KYMO_TYPE_BYTES);
	check(fetch->kind == KYMO_FETCH_FORM && fetch->limit >= 1 && fetch->limit <= KYMO_FETCH_LIMIT_MAX);
	if (kymo_form_has(fetch->form, KYMO_FORM_WANT, NULL))
		check(fetch->limit <= KYMO_FORM_WANTED_MAX);
}

static void check_arg(const struct kymo_spec *spec, size_t i)
{
	const struct kymo_spec_arg *arg = &spec->args[i];

	check(arg->name && *arg->name);
	check_type(&arg->fetch);
	check(!arg->form == (arg->fetch.kind != KYMO_FETCH_FORM));
	if (arg->form)
		check_form(spec, arg->form);
	if (arg->form && kymo_form_has(arg->form, KYMO_FORM_WANT, NULL))
		check(kymo_fetch_is_of_memory(&arg->fetch));
	if (arg->fetch.kind == KYMO_FETCH_STACK)
		check(arg->fetch.value >= 0 && arg->fetch.value <= KYMO_FETCH_STACK_MAX);
	if (arg->fetch.kind == KYMO_FETCH_ARGUMENT) {
		check(arg->fetch.value >= 1 && arg->fetch.value <= 6 + KYMO_FETCH_STACK_MAX);
		check(!spec->is_return && !spec->every_instruction);
	}
	if (arg->fetch.kind == KYMO_FETCH_RETVAL)
		check(spec->is_return && !arg->fetch.value);
	if (arg->fetch.writes)
		check(!spec->is_return && !spec->marker && (spec->needs_names || kymo_form_can_be_written(arg->form)));
	for (size_t other = 0; other < i; other++)
		check(strcmp(spec->args[other].name, arg->name));
}

static void check_spec(const struct kymo_spec *spec, const char *text)
{
	check(!strcmp(spec->text, text) && !spec->address == (spec->file && *spec->file));
	check(spec->symbol ? !!*spec->symbol : spec->offset >= 0);
	if (spec->address)
		check(!spec->file && !spec->symbol && !spec->offset && !spec->is_return &&
		      spec->address < (uint64_t)1 << 47);
	if (spec->every_instruction)
		check(spec->symbol && !spec->offset && !spec->is_return);
	if (spec->is_return && spec->symbol)
		check(!spec->offset);
	check(spec->n_args <= KYMO_EVENT_MAX_ARGS);
	if (spec->filter) {
		check_form(spec, spec->filter);
		check(!kymo_form_has(spec->filter, KYMO_FORM_WANT, NULL));
	}
	for (size_t i = 0; i < spec->n_args; i++)
		check_arg(spec, i);
}

static void parse(const char *text, struct kymo_error *(*as)(const char *text, struct kymo_spec *ret))
{
	struct kymo_spec spec;
	struct kymo_error *error = as(text, &spec);

	if (error) {
		check(error->code == KYMO_ERROR_USAGE);
		check(!strncmp(error->message, "column ", 7) ? error->message[strlen(error->message) - 1] == '^'
							     : !strncmp(error->message, "a probe is written", 18));
		kymo_error_destroy(error);
		return;
	}
	check_spec(&spec, text);
	check(as == kymo_spec_parse || spec.is_return);
	kymo_spec_deinit(&spec);
}

/* The same words for each location of an SDT probe. What is accepted without operands may be too long with some. */
static void parse_at_operands(const struct kymo_spec *spec)
{
	static const struct kymo_fetch operands[KYMO_EVENT_MAX_ARGS] = {
		{ .kind = KYMO_FETCH_REGISTER, .type = KYMO_TYPE_S8, .value = 7 },
		{ .kind = KYMO_FETCH_MEMORY, .type = KYMO_TYPE_U32, .value = -8, .base = 4, .index = -1, .scale = 1 },
		{ .kind = KYMO_FETCH_MEMORY, .type = KYMO_TYPE_S16, .base = 0, .index = 15, .scale = 8 },
		{ .kind = KYMO_FETCH_IMMEDIATE, .type = KYMO_TYPE_U64, .value = 5 },
		{ .kind = KYMO_FETCH_GLOBAL, .type = KYMO_TYPE_U8, .value = 0x4000 },
	};
	struct kymo_spec own;
	struct kymo_error *error = kymo_spec_at_operands(spec, operands, KYMO_EVENT_MAX_ARGS, &own);

	if (error) {
		check(error->code == KYMO_ERROR_USAGE);
		kymo_error_destroy(error);
		return;
	}
	check(own.n_args == spec->n_args && !own.filter == !spec->filter && !own.operands);
	for (size_t i = 0; i < own.n_args; i++)
		check_arg(&own, i);
	if (own.filter)
		check_form(&own, own.filter);
	kymo_spec_deinit(&own);
}

static void parse_marker(const char *text)
{
	struct kymo_spec spec;
	struct kymo_error *error = kymo_spec_parse_marker(text, &spec);

	if (error) {
		check(error->code == KYMO_ERROR_USAGE);
		kymo_error_destroy(error);
		return;
	}
	check(!strcmp(spec.text, text) && *spec.marker && !spec.file && !spec.sampling && !spec.needs_names);
	check(spec.n_operands_needed <= KYMO_EVENT_MAX_ARGS);
	for (size_t i = 0; i < spec.n_args; i++)
		check_arg(&spec, i);
	parse_at_operands(&spec);
	kymo_spec_deinit(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	parse(text, kymo_spec_parse);
	parse(text, kymo_spec_parse_return);
	parse_marker(text);
	free(text);
	return 0;
}
