/*
 * Metadata back into a schema. The dialect is what write.c writes, in its order: types, trace, env, clock, stream,
 * events. One token of lookahead, no recursion; every list has a bound.
 */
#include "ctf/parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "ctf/site.h"
#include "ctf/tables.h"
#include "ctf/token.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"
#include "wire/event.h"

#define MAX_ENV (1u << 20)
#define MAX_FIELDS (KYMO_EVENT_MAX_ARGS + 1) /* while the last two may be one */

struct parser {
	struct tokenizer in;
	struct token now;
	struct kymo_error *error; /* set by the function that returned false */
	KYMO_VEC(struct kymo_ctf_env) env;
	KYMO_VEC(struct kymo_ctf_event) events;
	uint8_t *ids;                     /* a bit for each id that has been declared */
	bool has_real[KYMO_TYPE_F64 + 1]; /* that type is declared */
	struct kymo_ctf_trace trace;      /* but for env and events */
};

__attribute__((format(printf, 3, 4))) static bool fail_at(struct parser *p, unsigned int line, const char *format, ...)
{
	va_list args;
	char *what;

	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	p->error = what ? kymo_error_create(KYMO_ERROR_BAD_DATA, "metadata:%u: %s", line, what) : &kymo_error_no_memory;
	free(what);
	return false;
}

static bool no_memory(struct parser *p)
{
	p->error = &kymo_error_no_memory;
	return false;
}

static bool advance(struct parser *p)
{
	const char *wrong = kymo_tokenizer_next(&p->in, &p->now);

	return wrong ? fail_at(p, p->in.line, "%s", wrong) : true;
}

/* Fail at the token at hand. A token's own text can hold what a terminal obeys, so strings are not quoted. */
static bool fail_expected(struct parser *p, const char *what, size_t size)
{
	if (p->now.kind == TOKEN_END)
		return fail_at(p, p->now.line, "'%.*s' was expected; the text ends", (int)size, what);
	if (p->now.kind == TOKEN_STRING)
		return fail_at(p, p->now.line, "'%.*s' was expected; a string stands there", (int)size, what);
	return fail_at(p, p->now.line, "'%.*s' was expected, not '%.*s'", (int)size, what,
		       p->now.size < 40 ? (int)p->now.size : 40, p->now.text);
}

static bool at_mark(const struct parser *p, const char *text)
{
	return p->now.kind != TOKEN_STRING && p->now.size == strlen(text) && !memcmp(p->now.text, text, p->now.size);
}

/* The tokens of `text` must come next. */
static bool expect(struct parser *p, const char *text)
{
	struct tokenizer want;
	struct token token;

	kymo_tokenizer_init(&want, text, strlen(text));
	for (;;) {
		kymo_tokenizer_next(&want, &token);
		if (token.kind == TOKEN_END)
			return true;
		if (!kymo_token_equal(&token, &p->now))
			return fail_expected(p, token.text, token.size);
		if (!advance(p))
			return false;
	}
}

static bool take_string(struct parser *p, char **ret)
{
	int err;

	if (p->now.kind != TOKEN_STRING)
		return fail_expected(p, "string", 6);
	err = kymo_token_string(&p->now, ret);
	if (err == -ENOMEM)
		return no_memory(p);
	if (err)
		return fail_at(p, p->now.line, "a string has an escape that is not known");
	if (advance(p))
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}

static bool take_limited_number(struct parser *p, uint64_t limit, uint64_t *ret)
{
	uint64_t value;

	if (p->now.kind != TOKEN_NUMBER)
		return fail_expected(p, "number", 6);
	if (!kymo_token_number(&p->now, &value) || value > limit)
		return fail_at(p, p->now.line, "a number is out of range");
	if (!advance(p))
		return false;
	*ret = value;
	return true;
}

/* A name into fresh memory, without its first `skip` characters. */
static bool take_name(struct parser *p, size_t skip, char **ret)
{
	if (p->now.kind != TOKEN_NAME || p->now.size <= skip)
		return fail_expected(p, "name", 4);
	*ret = strndup(p->now.text + skip, p->now.size - skip);
	if (!*ret)
		return no_memory(p);
	if (advance(p))
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}

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

	if (!take_string(p, &text))
		return false;
	return parse_uuid_text(text, ret) || fail_at(p, line, "the uuid is malformed");
}

/* What follows `KEY =` in the env block, as text. */
static bool take_env_value(struct parser *p, char **ret)
{
	bool negative = at_mark(p, "-");
	uint64_t number;

	if (p->now.kind == TOKEN_STRING)
		return take_string(p, ret);
	if ((negative && !advance(p)) ||
	    !take_limited_number(p, negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &number))
		return false;
	if (asprintf(ret, "%s%llu", negative && number ? "-" : "", (unsigned long long)number) >= 0)
		return true;
	*ret = NULL;
	return no_memory(p);
}

static bool take_format(struct parser *p, const char *value, unsigned int line)
{
	const int format = atoi(value);

	p->trace.is_packed = format == KYMO_TSDL_FORMAT_PACKED;
	return p->trace.is_packed || format == KYMO_TSDL_FORMAT ||
	       fail_at(p, line, "the trace has a format of another kymo; this one reads %d and %d", KYMO_TSDL_FORMAT,
		       KYMO_TSDL_FORMAT_PACKED);
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

	if (!take_name(p, 0, &key) || !expect(p, "=") || !take_env_value(p, &value) || !expect(p, ";") ||
	    !take_reserved(p, key, value, line, &is_reserved))
		return false;
	if (is_reserved)
		return true;
	if (p->env.n == MAX_ENV)
		return fail_at(p, line, "more than %u keys in the environment", MAX_ENV);
	if (!kymo_vec_push(&p->env, (struct kymo_ctf_env){ key, value }))
		return no_memory(p);
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
		return no_memory(p);
	for (size_t i = 0; i < p->env.n; i++)
		keys[i] = p->env.items[i].key;
	qsort(keys, p->env.n, sizeof(*keys), compare_env_keys);
	for (size_t i = 1; i < p->env.n; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			return fail_at(p, p->now.line, "'%.40s' is twice in the environment", keys[i]);
	return true;
}

static bool parse_env(struct parser *p)
{
	if (!expect(p, "env {"))
		return false;
	while (!at_mark(p, "}"))
		if (!parse_env_line(p))
			return false;
	return check_keys(p) && (kymo_ctf_tables_take(&p->trace, p->env.items, &p->env.n) || no_memory(p)) &&
	       expect(p, "};");
}

static bool parse_clock(struct parser *p)
{
	kymo_cleanup_free char *description = NULL;
	uint8_t uuid[16];
	unsigned int line;

	if (!expect(p, "clock { name = kymo; uuid =") || !take_uuid(p, uuid) || !expect(p, "; description =") ||
	    !take_string(p, &description) || !expect(p, "; freq ="))
		return false;
	line = p->now.line;
	if (!take_limited_number(p, UINT64_MAX, &p->trace.clock_frequency))
		return false;
	if (!p->trace.clock_frequency)
		return fail_at(p, line, "the clock's frequency is 0");
	return expect(p, "; offset_s =") && take_limited_number(p, UINT64_MAX / 1000000000, &p->trace.clock_offset_s) &&
	       expect(p, "; offset =") && take_limited_number(p, UINT64_MAX, &p->trace.clock_offset) &&
	       expect(p, "; absolute = TRUE; };");
}

static bool parse_site(struct parser *p, struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *uri = NULL;
	unsigned int line = p->now.line;
	int err;

	if (!take_string(p, &uri))
		return false;
	err = kymo_ctf_parse_site(uri, event);
	if (err == -ENOMEM)
		return no_memory(p);
	return err ? fail_at(p, line, "the event's uri is malformed") : expect(p, ";");
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
		return fail_expected(p, ";", 1);
	if (!expect(p, "[") || !take_name(p, 1, &name))
		return false;
	if (strcmp(name, length->name))
		return fail_at(p, p->now.line, "the length of '%.40s' is not the field before it", bytes->name);
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
	return expect(p, "];");
}

/* The type at the token, which stays there. */
static bool see_type(struct parser *p, int *ret)
{
	*ret = -1;
	if (p->now.kind == TOKEN_NAME && p->now.size < 8)
		*ret = kymo_type_parse_any(p->now.text, (uint32_t)p->now.size);
	if (*ret < 0 || *ret == KYMO_TYPE_BYTES || (kymo_type_is_real((enum kymo_type) * ret) && !p->has_real[*ret]))
		return fail_expected(p, "type", 4);
	return true;
}

/* "NAME" = VALUE */
static bool parse_value_name(struct parser *p, enum kymo_type type, struct kymo_naming *naming)
{
	kymo_cleanup_free char *name = NULL;
	const unsigned int line = p->now.line;
	bool is_negative;
	uint64_t value;
	int err;

	if (!take_string(p, &name) || !expect(p, "="))
		return false;
	is_negative = at_mark(p, "-");
	if (is_negative && (!kymo_type_is_signed(type) || !advance(p)))
		return p->error ? false : fail_expected(p, "number", 6);
	if (!take_limited_number(p, is_negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &value))
		return false;
	err = kymo_naming_add(naming, name, strlen(name), (int64_t)(is_negative ? 0 - value : value));
	if (err == -ENOMEM)
		return no_memory(p);
	return !err || fail_at(p, line, "an enumeration has an empty name, or more than %d", KYMO_NAMING_NAMES_MAX);
}

/* All of it but its last token. */
static bool parse_enumeration(struct parser *p, struct kymo_ctf_field *field, int *type_ret)
{
	if (!expect(p, "enum :") || !see_type(p, type_ret))
		return false;
	if (!kymo_type_is_integer((enum kymo_type) * type_ret))
		return fail_expected(p, "integer", 7);
	field->naming = kymo_naming_create();
	if (!field->naming)
		return no_memory(p);
	if (!advance(p) || !expect(p, "{"))
		return false;
	while (parse_value_name(p, (enum kymo_type) * type_ret, field->naming))
		if (!at_mark(p, ","))
			return at_mark(p, "}") || fail_expected(p, "}", 1);
		else if (!advance(p))
			return false;
	return false;
}

/* All of it but its last token. */
static bool parse_character(struct parser *p, struct kymo_ctf_field *field, int *type_ret)
{
	bool is_signed;

	if (!expect(p, "integer { size = 8; align = 8; signed ="))
		return false;
	is_signed = at_mark(p, "true");
	if (!expect(p, is_signed ? "true" : "false") || !expect(p, "; byte_order = le; encoding = UTF8; base = 10;"))
		return false;
	*type_ret = is_signed ? KYMO_TYPE_S8 : KYMO_TYPE_U8;
	field->naming = kymo_naming_characters();
	return at_mark(p, "}") || fail_expected(p, "}", 1);
}

/* The type of a field, up to its last token. The naming is the field's, also where this fails. */
static bool parse_type(struct parser *p, struct kymo_ctf_field *field, int *type_ret)
{
	if (at_mark(p, "enum"))
		return parse_enumeration(p, field, type_ret);
	if (at_mark(p, "integer"))
		return parse_character(p, field, type_ret);
	return see_type(p, type_ret);
}

/* "TYPE _NAME" */
static bool parse_declaration(struct parser *p, const struct kymo_ctf_event *event, struct kymo_ctf_field *field)
{
	const struct kymo_ctf_field *before = event->n_fields ? &event->fields[event->n_fields - 1] : NULL;
	int type;

	if (!parse_type(p, field, &type))
		return false;
	if (event->n_fields >= KYMO_EVENT_MAX_ARGS &&
	    (event->n_fields == MAX_FIELDS || !is_of_arrays((enum kymo_type)type) || before->type != KYMO_TYPE_U16))
		return fail_at(p, p->now.line, "an event has more than %d fields", KYMO_EVENT_MAX_ARGS);
	if (!advance(p))
		return false;
	if (p->now.kind != TOKEN_NAME || p->now.text[0] != '_')
		return fail_expected(p, "_name", 5);
	field->type = (enum kymo_type)type;
	return take_name(p, 1, &field->name);
}

static bool parse_field(struct parser *p, struct kymo_ctf_event *event)
{
	struct kymo_ctf_field field = { .name = NULL };

	if (!parse_declaration(p, event, &field)) {
		kymo_naming_release(field.naming);
		return false;
	}
	event->fields[event->n_fields++] = field;
	return at_mark(p, "[") ? join_bytes(p, event) : expect(p, ";");
}

static bool parse_fields(struct parser *p, struct kymo_ctf_event *event)
{
	event->fields = calloc(MAX_FIELDS, sizeof(*event->fields));
	if (!event->fields)
		return no_memory(p);
	if (!expect(p, "fields := struct {"))
		return false;
	while (!at_mark(p, "}"))
		if (!parse_field(p, event))
			return false;
	if (event->n_fields > KYMO_EVENT_MAX_ARGS)
		return fail_at(p, p->now.line, "an event has more than %d fields", KYMO_EVENT_MAX_ARGS);
	return expect(p, "};");
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

	if (!expect(p, "event { name =") || !take_string(p, &event->name) || !expect(p, "; id ="))
		return false;
	line = p->now.line;
	if (!take_limited_number(p, KYMO_EVENT_ID_MAX, &id) || !expect(p, "; stream_id = 0;"))
		return false;
	event->id = (uint32_t)id;
	if (p->ids[id / 8] & 1u << id % 8)
		return fail_at(p, line, "event id %u is used twice", event->id);
	p->ids[id / 8] |= (uint8_t)(1u << id % 8);
	if (at_mark(p, "model") && (!expect(p, "model.emf.uri =") || !parse_site(p, event)))
		return false;
	if (at_mark(p, "context")) {
		if (!expect(p, KYMO_TSDL_FAULTS))
			return false;
		event->has_faults = true;
	}
	if (!parse_fields(p, event) || !expect(p, "};"))
		return false;
	take_stack_fields(event);
	event->size = kymo_ctf_event_size(event);
	return true;
}

static bool parse_event(struct parser *p)
{
	/* In the vector first, so that what is half parsed is freed with the rest. */
	if (!kymo_vec_push(&p->events, (struct kymo_ctf_event){ 0 }))
		return no_memory(p);
	return parse_event_body(p, &p->events.items[p->events.n - 1]);
}

/* Floating-point types, each once at most. */
static bool parse_reals(struct parser *p)
{
	while (at_mark(p, "typealias")) {
		bool is_wide;

		if (!expect(p, KYMO_TSDL_REAL))
			return false;
		is_wide = !p->has_real[KYMO_TYPE_F64] && !p->has_real[KYMO_TYPE_F32] && at_mark(p, "11");
		if (p->has_real[KYMO_TYPE_F32])
			return fail_expected(p, "trace", 5);
		if (!expect(p, is_wide ? KYMO_TSDL_F64_REST : KYMO_TSDL_F32_REST))
			return false;
		p->has_real[is_wide ? KYMO_TYPE_F64 : KYMO_TYPE_F32] = true;
	}
	return true;
}

static bool parse(struct parser *p)
{
	p->ids = calloc((KYMO_EVENT_ID_MAX + 1) / 8, 1);
	if (!p->ids)
		return no_memory(p);
	if (!advance(p) || !expect(p, KYMO_TSDL_TYPES))
		return false;
	if (!parse_reals(p) || !expect(p, KYMO_TSDL_TRACE_HEAD) || !take_uuid(p, p->trace.uuid) ||
	    !expect(p, KYMO_TSDL_TRACE_TAIL) || !parse_env(p) || !parse_clock(p) || !expect(p, KYMO_TSDL_STREAM) ||
	    !expect(p, p->trace.is_packed ? KYMO_TSDL_PACKED : KYMO_TSDL_PLAIN))
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
