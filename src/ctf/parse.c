/*
 * Metadata back into a schema. The dialect is what write.c writes, in its order: types, trace, env, clock, stream,
 * events. One token of lookahead; every list has a bound, and so has the depth of structures.
 */
#include "ctf/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctf/parse_shape.h"
#include "ctf/parse_type.h"
#include "ctf/parser.h"
#include "ctf/site.h"
#include "ctf/tables.h"
#include "ctf/token.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"
#include "wire/event.h"

#define MAX_ENV (1u << 20)
#define MAX_FIELDS (KYMO_EVENT_MAX_ARGS + 1) /* while the last two may be one */

static bool parse_uuid_text(const char *text, uint8_t *ret)
{
	for (int i = 0; i < 16; i++) {
		unsigned int byte = 0;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		for (int digit = 0; digit < 2; digit++, text++) {
			const char *digits = "0123456789abcdef";
			const char *found = *text ? strchr(digits, *text) : NULL;

			if (!found)
				return false;
			byte = byte << 4 | (unsigned int)(found - digits);
		}
		ret[i] = (uint8_t)byte;
	}
	return !*text;
}

static bool take_uuid(struct parser *p, uint8_t *ret)
{
	kymo_cleanup_free char *text = NULL;
	unsigned int line = p->now.line;

	if (!kymo_parser_take_string(p, &text))
		return false;
	return parse_uuid_text(text, ret) || kymo_parser_fail_at(p, line, "the uuid is malformed");
}

/* What follows `KEY =` in the env block, as text. */
static bool take_env_value(struct parser *p, char **ret)
{
	bool negative = kymo_parser_at_mark(p, "-");
	uint64_t number;

	if (p->now.kind == TOKEN_STRING)
		return kymo_parser_take_string(p, ret);
	if ((negative && !kymo_parser_advance(p)) ||
	    !kymo_parser_take_limited_number(p, negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &number))
		return false;
	if (asprintf(ret, "%s%llu", negative && number ? "-" : "", (unsigned long long)number) >= 0)
		return true;
	*ret = NULL;
	return kymo_parser_no_memory(p);
}

static bool take_format(struct parser *p, const char *value, unsigned int line)
{
	const int format = atoi(value);

	p->trace.is_packed = format == KYMO_TSDL_FORMAT_PACKED;
	return p->trace.is_packed || format == KYMO_TSDL_FORMAT ||
	       kymo_parser_fail_at(p, line, "the trace has a format of another kymo; this one reads %d and %d",
				   KYMO_TSDL_FORMAT, KYMO_TSDL_FORMAT_PACKED);
}

/* Keys that are the trace's own fields. */
static bool take_reserved(struct parser *p, const char *key, const char *value, unsigned int line, bool *ret)
{
	*ret = true;
	if (!strcmp(key, "clock_invariant"))
		p->trace.clock_is_invariant = !strcmp(value, "1");
	else if (!strcmp(key, "monotonic_offset_ns"))
		p->trace.monotonic_offset_ns = (int64_t)strtoll(value, NULL, 10);
	else if (!strcmp(key, "kymo_format"))
		return take_format(p, value, line);
	else
		*ret = false;
	return true;
}

static bool parse_env_line(struct parser *p)
{
	kymo_cleanup_free char *key = NULL;
	kymo_cleanup_free char *value = NULL;
	unsigned int line = p->now.line;
	bool is_reserved;

	if (!kymo_parser_take_name(p, 0, &key) || !kymo_parser_expect(p, "=") || !take_env_value(p, &value) ||
	    !kymo_parser_expect(p, ";") || !take_reserved(p, key, value, line, &is_reserved))
		return false;
	if (is_reserved)
		return true;
	if (p->env.n == MAX_ENV)
		return kymo_parser_fail_at(p, line, "more than %u keys in the environment", MAX_ENV);
	if (!kymo_vec_push(&p->env, (struct kymo_ctf_env){ key, value }))
		return kymo_parser_no_memory(p);
	key = value = NULL;
	return true;
}

static int compare_env_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool check_keys(struct parser *p)
{
	kymo_cleanup_free const char **keys = calloc(p->env.n + 1, sizeof(*keys));

	if (!keys)
		return kymo_parser_no_memory(p);
	for (size_t i = 0; i < p->env.n; i++)
		keys[i] = p->env.items[i].key;
	qsort(keys, p->env.n, sizeof(*keys), compare_env_keys);
	for (size_t i = 1; i < p->env.n; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			return kymo_parser_fail_at(p, p->now.line, "'%.40s' is twice in the environment", keys[i]);
	return true;
}

static bool parse_env(struct parser *p)
{
	if (!kymo_parser_expect(p, "env {"))
		return false;
	while (!kymo_parser_at_mark(p, "}"))
		if (!parse_env_line(p))
			return false;
	return check_keys(p) &&
	       (kymo_ctf_tables_take(&p->trace, p->env.items, &p->env.n) || kymo_parser_no_memory(p)) &&
	       kymo_parser_expect(p, "};");
}

static bool parse_clock(struct parser *p)
{
	kymo_cleanup_free char *description = NULL;
	uint8_t uuid[16];
	unsigned int line;

	if (!kymo_parser_expect(p, "clock { name = kymo; uuid =") || !take_uuid(p, uuid) ||
	    !kymo_parser_expect(p, "; description =") || !kymo_parser_take_string(p, &description) ||
	    !kymo_parser_expect(p, "; freq ="))
		return false;
	line = p->now.line;
	if (!kymo_parser_take_limited_number(p, UINT64_MAX, &p->trace.clock_frequency))
		return false;
	if (!p->trace.clock_frequency)
		return kymo_parser_fail_at(p, line, "the clock's frequency is 0");
	return kymo_parser_expect(p, "; offset_s =") &&
	       kymo_parser_take_limited_number(p, UINT64_MAX / 1000000000, &p->trace.clock_offset_s) &&
	       kymo_parser_expect(p, "; offset =") &&
	       kymo_parser_take_limited_number(p, UINT64_MAX, &p->trace.clock_offset) &&
	       kymo_parser_expect(p, "; absolute = TRUE; };");
}

static bool parse_site(struct parser *p, struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *uri = NULL;
	unsigned int line = p->now.line;
	int err;

	if (!kymo_parser_take_string(p, &uri))
		return false;
	err = kymo_ctf_parse_site(uri, event);
	if (err == -ENOMEM)
		return kymo_parser_no_memory(p);
	return err ? kymo_parser_fail_at(p, line, "the event's uri is malformed") : kymo_parser_expect(p, ";");
}

/* Whether arrays have elements of that type. */
static bool is_of_arrays(enum kymo_type type)
{
	return kymo_type_is_integer(type) || kymo_type_is_real(type);
}

/* `TYPE _NAME` was the beginning of bytes or an array, if their length stands right before: both are one field. */
static bool join_bytes(struct parser *p, struct kymo_ctf_event *event)
{
	struct kymo_ctf_field *bytes = &event->fields[event->n_fields - 1], *length = bytes - 1;
	size_t n = strlen(bytes->name);
	kymo_cleanup_free char *name = NULL;

	if (event->n_fields < 2 || !is_of_arrays(bytes->type) || length->type != KYMO_TYPE_U16 ||
	    strncmp(length->name, bytes->name, n) || strcmp(length->name + n, "_length"))
		return kymo_parser_fail_expected(p, ";", 1);
	if (!kymo_parser_expect(p, "[") || !kymo_parser_take_name(p, 1, &name))
		return false;
	if (strcmp(name, length->name))
		return kymo_parser_fail_at(p, p->now.line, "the length of '%.40s' is not the field before it",
					   bytes->name);
	free(length->name);
	kymo_naming_release(length->naming);
	*length = (struct kymo_ctf_field){
		.name = bytes->name,
		.type = KYMO_TYPE_BYTES,
		.naming = bytes->naming,
		.array_of = bytes->type == KYMO_TYPE_X8 ? 0 : KYMO_ARRAY_OF(bytes->type),
	};
	event->n_fields--;
	*bytes = (struct kymo_ctf_field){ 0 };
	return kymo_parser_expect(p, "];");
}

/* "TYPE _NAME" */
static bool parse_declaration(struct parser *p, const struct kymo_ctf_event *event, struct kymo_ctf_field *field)
{
	const struct kymo_ctf_field *before = event->n_fields ? &event->fields[event->n_fields - 1] : NULL;
	struct parsed_type type;
	const bool is_good = kymo_parse_type(p, false, &type);

	field->naming = type.naming;
	if (!is_good)
		return false;
	if (event->n_fields >= KYMO_EVENT_MAX_ARGS &&
	    (event->n_fields == MAX_FIELDS || !is_of_arrays(type.type) || before->type != KYMO_TYPE_U16))
		return kymo_parser_fail_at(p, p->now.line, "an event has more than %d fields", KYMO_EVENT_MAX_ARGS);
	if (!kymo_parser_advance(p))
		return false;
	if (p->now.kind != TOKEN_NAME || p->now.text[0] != '_')
		return kymo_parser_fail_expected(p, "_name", 5);
	field->type = type.type;
	return kymo_parser_take_name(p, 1, &field->name);
}

/* The field before, a u16 of that ending, and the structures are one field, of the name at hand. */
static bool join_structures(struct parser *p, struct kymo_ctf_event *event, const char *ending,
			    struct kymo_shape *shape)
{
	struct kymo_ctf_field *before = event->n_fields ? &event->fields[event->n_fields - 1] : NULL;
	kymo_cleanup_free char *name = NULL;
	size_t n;

	if (!before || before->type != KYMO_TYPE_U16) {
		kymo_shape_release(shape);
		return kymo_parser_fail_expected(p, "type", 4);
	}
	kymo_shape_release(before->shape);
	before->shape = shape;
	before->type = KYMO_TYPE_BYTES;
	kymo_naming_release(before->naming);
	before->naming = NULL;
	if (p->now.kind != TOKEN_NAME || p->now.text[0] != '_')
		return kymo_parser_fail_expected(p, "_name", 5);
	if (!kymo_parser_take_name(p, 1, &name))
		return false;
	n = strlen(name);
	if (strncmp(before->name, name, n) || strcmp(before->name + n, ending))
		return kymo_parser_fail_at(p, p->now.line, "the number of '%.40s' is not the field before it", name);
	free(before->name);
	before->name = kymo_take(name);
	return true;
}

/* "struct { ... } _NAME[_NAME_length];", after "u16 _NAME_length;" */
static bool parse_list(struct parser *p, struct kymo_ctf_event *event)
{
	struct kymo_shape *shape;
	kymo_cleanup_free char *length = NULL;
	struct kymo_ctf_field *field;

	if (!kymo_parse_shape(p, &shape) || !join_structures(p, event, "_length", shape))
		return false;
	field = &event->fields[event->n_fields - 1];
	field->is_list = true;
	if (!kymo_parser_expect(p, "[") || !kymo_parser_take_name(p, 1, &length))
		return false;
	if (strncmp(length, field->name, strlen(field->name)) || strcmp(length + strlen(field->name), "_length"))
		return kymo_parser_fail_at(p, p->now.line, "the length of '%.40s' is not the field before it",
					   field->name);
	return kymo_parser_expect(p, "];");
}

/* "variant <_NAME_present> { struct { } absent; struct { ... } present; } _NAME;", after "enum : u16 ...
 * _NAME_present;"
 */
static bool parse_present(struct parser *p, struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *tag = NULL;
	struct kymo_ctf_field *before = event->n_fields ? &event->fields[event->n_fields - 1] : NULL;
	struct kymo_shape *shape;

	if (!kymo_parser_expect(p, "variant <") || !kymo_parser_take_name(p, 1, &tag))
		return false;
	if (!before || strcmp(before->name, tag))
		return kymo_parser_fail_at(p, p->now.line, "the tag of a variant is not the field before it");
	if (!kymo_parser_expect(p, "> { struct { } absent;") || !kymo_parse_shape(p, &shape))
		return false;
	if (!kymo_parser_expect(p, "present; }")) {
		kymo_shape_release(shape);
		return false;
	}
	return join_structures(p, event, "_present", shape) && kymo_parser_expect(p, ";");
}

static bool parse_field(struct parser *p, struct kymo_ctf_event *event)
{
	struct kymo_ctf_field field = { .name = NULL };

	if (kymo_parser_at_mark(p, "struct"))
		return parse_list(p, event);
	if (kymo_parser_at_mark(p, "variant"))
		return parse_present(p, event);

	if (!parse_declaration(p, event, &field)) {
		kymo_naming_release(field.naming);
		return false;
	}
	event->fields[event->n_fields++] = field;
	return kymo_parser_at_mark(p, "[") ? join_bytes(p, event) : kymo_parser_expect(p, ";");
}

static bool parse_fields(struct parser *p, struct kymo_ctf_event *event)
{
	event->fields = calloc(MAX_FIELDS, sizeof(*event->fields));
	if (!event->fields)
		return kymo_parser_no_memory(p);
	if (!kymo_parser_expect(p, "fields := struct {"))
		return false;
	while (!kymo_parser_at_mark(p, "}"))
		if (!parse_field(p, event))
			return false;
	if (event->n_fields > KYMO_EVENT_MAX_ARGS)
		return kymo_parser_fail_at(p, p->now.line, "an event has more than %d fields", KYMO_EVENT_MAX_ARGS);
	return kymo_parser_expect(p, "};");
}

/* Whether the last field is this one, which is none like others then. */
static bool take_last(struct kymo_ctf_event *event, enum kymo_type type, const char *name)
{
	const struct kymo_ctf_field *last = event->n_fields ? &event->fields[event->n_fields - 1] : NULL;
	const bool is = last && last->type == type && !strcmp(last->name, name);

	event->n_fields -= is;
	return is;
}

/* The stack pointer of a call, and the stack. */
static void take_stack_fields(struct kymo_ctf_event *event)
{
	event->has_stack_pointer =
		kymo_ctf_is_of_function(event) && take_last(event, KYMO_TYPE_X64, KYMO_STACK_POINTER_FIELD);
	event->has_stack = take_last(event, KYMO_TYPE_U32, KYMO_STACK_FIELD);
}

static bool parse_event_body(struct parser *p, struct kymo_ctf_event *event)
{
	unsigned int line;
	uint64_t id;

	if (!kymo_parser_expect(p, "event { name =") || !kymo_parser_take_string(p, &event->name) ||
	    !kymo_parser_expect(p, "; id ="))
		return false;
	line = p->now.line;
	if (!kymo_parser_take_limited_number(p, KYMO_EVENT_ID_MAX, &id) || !kymo_parser_expect(p, "; stream_id = 0;"))
		return false;
	event->id = (uint32_t)id;
	if (p->ids[id / 8] & 1u << id % 8)
		return kymo_parser_fail_at(p, line, "event id %u is used twice", event->id);
	p->ids[id / 8] |= (uint8_t)(1u << id % 8);
	if (kymo_parser_at_mark(p, "model") && (!kymo_parser_expect(p, "model.emf.uri =") || !parse_site(p, event)))
		return false;
	if (kymo_parser_at_mark(p, "context")) {
		if (!kymo_parser_expect(p, KYMO_TSDL_FAULTS))
			return false;
		event->has_faults = true;
	}
	if (!parse_fields(p, event) || !kymo_parser_expect(p, "};"))
		return false;
	take_stack_fields(event);
	kymo_ctf_event_measure(event);
	return true;
}

static bool parse_event(struct parser *p)
{
	/* In the vector first, so that what is half parsed is freed with the rest. */
	if (!kymo_vec_push(&p->events, (struct kymo_ctf_event){ 0 }))
		return kymo_parser_no_memory(p);
	return parse_event_body(p, &p->events.items[p->events.n - 1]);
}

/* Floating-point types, each once at most. */
static bool parse_reals(struct parser *p)
{
	while (kymo_parser_at_mark(p, "typealias")) {
		bool is_wide;

		if (!kymo_parser_expect(p, KYMO_TSDL_REAL))
			return false;
		is_wide = !p->has_real[KYMO_TYPE_F64] && !p->has_real[KYMO_TYPE_F32] && kymo_parser_at_mark(p, "11");
		if (p->has_real[KYMO_TYPE_F32])
			return kymo_parser_fail_expected(p, "trace", 5);
		if (!kymo_parser_expect(p, is_wide ? KYMO_TSDL_F64_REST : KYMO_TSDL_F32_REST))
			return false;
		p->has_real[is_wide ? KYMO_TYPE_F64 : KYMO_TYPE_F32] = true;
	}
	return true;
}

static bool parse(struct parser *p)
{
	p->ids = calloc((KYMO_EVENT_ID_MAX + 1) / 8, 1);
	if (!p->ids)
		return kymo_parser_no_memory(p);
	if (!kymo_parser_advance(p) || !kymo_parser_expect(p, KYMO_TSDL_TYPES))
		return false;
	if (!parse_reals(p) || !kymo_parser_expect(p, KYMO_TSDL_TRACE_HEAD) || !take_uuid(p, p->trace.uuid) ||
	    !kymo_parser_expect(p, KYMO_TSDL_TRACE_TAIL) || !parse_env(p) || !parse_clock(p) ||
	    !kymo_parser_expect(p, KYMO_TSDL_STREAM) ||
	    !kymo_parser_expect(p, p->trace.is_packed ? KYMO_TSDL_PACKED : KYMO_TSDL_PLAIN))
		return false;
	p->ids[0] |= p->trace.is_packed;
	while (p->now.kind != TOKEN_END)
		if (!parse_event(p))
			return false;
	return true;
}

struct kymo_error *kymo_ctf_parse_metadata(const char *text, size_t size, struct kymo_ctf_trace *ret)
{
	struct parser p = { 0 };
	bool done;

	kymo_tokenizer_init(&p.in, text, size);
	done = parse(&p);
	free(p.ids);
	p.trace.env = p.env.items;
	p.trace.n_env = p.env.n;
	p.trace.events = p.events.items;
	p.trace.n_events = p.events.n;
	if (done)
		*ret = p.trace;
	else
		kymo_ctf_trace_deinit(&p.trace);
	return p.error;
}
