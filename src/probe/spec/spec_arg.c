#include "probe/spec/spec_arg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "base/caret.h"
#include "base/cleanup.h"
#include "expr/naming.h"
#include "expr/shape.h"
#include "probe/spec/spec_arg_name.h"
#include "probe/spec/spec_fetch.h"
#include "probe/spec/spec_scope.h"
#include "probe/spec/spec_value.h"

/* ---- expressions ----------------------------------------------------------------------------- */

/* The "=" after a name, which is no comparison; or NULL. */
static const char *find_equals(struct kymo_spec_piece piece)
{
	const char *equals = memchr(piece.start, '=', kymo_spec_piece_size(piece));

	if (!equals || strchr("%$\\@+-(!~'*&\"", *piece.start) || (equals + 1 < piece.end && equals[1] == '=') ||
	    (equals > piece.start && strchr("<>!", equals[-1])))
		return NULL;
	return equals;
}

/* Anything but what the kernel's grammar has: that begins with a sign of its own, and has no operators. */
static bool is_expression(struct kymo_spec_piece fetch)
{
	const char *c = fetch.start;

	if (c == fetch.end || strchr("\\@+-", *c) || kymo_spec_is_digit(*c) || kymo_spec_piece_is(fetch, "$arg*"))
		return false;
	if (strchr("(!~'*&\"", *c) || *c == '_' || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
		return true;
	if (*c != '%' && *c != '$')
		return false;
	for (c++; c < fetch.end && *c != ':'; c++)
		if (strchr("+-*/%&|^<>=!?[", *c))
			return true;
	return false;
}

/* The ":" before the type, outside of brackets; or NULL. */
static const char *find_type(struct kymo_spec_piece fetch)
{
	const char *found = NULL;
	int depth = 0;

	for (const char *c = fetch.start; c < fetch.end; c++) {
		c = kymo_spec_skip_quoted(c, fetch.end);
		depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
		if (*c == ':' && c + 1 < fetch.end && c[1] == ':')
			c++; /* of a name */
		else if (*c == ':' && !depth && !found)
			found = c;
	}
	return found;
}

static struct kymo_error *choose_naming(struct kymo_spec_reader *reader, struct kymo_expr_type type)
{
	const struct kymo_expr_names names = kymo_spec_value_names(reader->spec);

	return kymo_expr_naming(&names, type, &reader->naming);
}

static bool is_plain_byte(struct kymo_expr_type type)
{
	if (type.size != 1 || type.is_signed)
		return false;
	return !type.of || type.of->kind == KYMO_CTYPE_INTEGER ||
	       (type.of->kind == KYMO_CTYPE_CHARACTER && !kymo_expr_is_character(type.of));
}

/* What of a structure is not recorded, as it is too large. */
static struct kymo_error *tell_cut(struct kymo_spec_reader *reader, const struct kymo_expr_names *names,
				   struct kymo_expr_type type)
{
	const struct kymo_ctype_member *members = NULL;
	const uint64_t bytes = kymo_expr_type_bytes(type);
	char name[KYMO_EXPR_TYPE_NAME_MAX];
	struct kymo_error *error;
	size_t n = 0;

	if (reader->shape->size >= bytes)
		return NULL;
	error = names->parts(names->data, type.of, &members, &n);
	if (error)
		return error;
	if (asprintf(&reader->cut,
		     "'%.*s' is a '%s' of %" PRIu64
		     " bytes, and the first %u are recorded: %u of %zu members; name the others that you need",
		     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start, kymo_expr_type_name(type, name),
		     bytes, reader->shape->size, reader->shape->n, n) >= 0)
		return NULL;
	reader->cut = NULL;
	return &kymo_error_no_memory;
}

static struct kymo_error *choose_shape(struct kymo_spec_reader *reader, struct kymo_expr_type type,
				       struct kymo_shape_limits limits)
{
	const struct kymo_expr_names names = kymo_spec_value_names(reader->spec);
	struct kymo_error *error = kymo_expr_shape(&names, type, limits, &reader->shape);

	if (reader->shape)
		reader->out.element_size = (uint16_t)reader->shape->size;
	if (reader->shape && !reader->is_list)
		reader->out.limit = reader->out.element_size;
	return error || !reader->shape ? error : tell_cut(reader, &names, type);
}

/* What the bytes are: numbers, names, text or structures. Those of "unsigned char" stay bytes. */
static struct kymo_error *choose_elements(struct kymo_spec_reader *reader, struct kymo_expr_type type)
{
	const struct kymo_shape_limits limits = {
		.depth = reader->spec->scope ? reader->spec->scope->limits.depth : KYMO_SHAPE_DEPTH_MAX,
		.size = KYMO_SHAPE_SIZE_MAX,
	};
	const struct kymo_expr_names names = kymo_spec_value_names(reader->spec);
	struct kymo_expr_type of;
	enum kymo_expr_class class;
	struct kymo_error *error;

	if (type.is_string || !kymo_expr_element_type(type, &of))
		return NULL;
	class = kymo_expr_class_of(of);
	if (class == KYMO_EXPR_STRUCT) {
		reader->is_list = true;
		return choose_shape(reader, of, limits);
	}
	if (class != KYMO_EXPR_INTEGER && class != KYMO_EXPR_POINTER &&
	    (class != KYMO_EXPR_FLOAT || (of.of->size != 4 && of.of->size != 8)))
		return NULL;
	if (is_plain_byte(of))
		return NULL;
	error = kymo_expr_row_shape(&names, type, limits, &reader->shape);
	reader->is_list = reader->shape;
	if (reader->shape)
		reader->out.element_size = (uint16_t)reader->shape->size;
	if (error || reader->shape)
		return error;
	reader->out.array_of = KYMO_ARRAY_OF(kymo_expr_record_type(of));
	return choose_naming(reader, of);
}

/* A structure as far as the limits let it be recorded. Without a shape it stays bytes. */
static struct kymo_error *choose_whole(struct kymo_spec_reader *reader, struct kymo_expr_type type)
{
	const struct kymo_spec_scope *scope = reader->spec->scope;

	if (!scope || kymo_expr_class_of(type) != KYMO_EXPR_STRUCT)
		return NULL;
	return choose_shape(reader, type, scope->limits);
}

/* How the value is recorded: of a text, a structure or an array it is the address. */
static struct kymo_error *record_as(struct kymo_spec_reader *reader, struct kymo_expr_type type)
{
	const uint64_t bytes = type.is_string ? (type.n ? type.n : KYMO_FETCH_LIMIT) : kymo_expr_type_bytes(type);
	uint32_t most = KYMO_FETCH_LIMIT_MAX;
	struct kymo_error *error;

	if (type.of == &kymo_expr_later)
		return NULL;
	reader->out.type = kymo_expr_record_type(type);
	if (!kymo_fetch_is_of_memory(&reader->out))
		return choose_naming(reader, type);
	error = choose_whole(reader, type);
	if (error || reader->shape)
		return error;
	if (kymo_expr_class_of(type) == KYMO_EXPR_STRUCT && reader->spec->scope)
		most = reader->spec->scope->limits.size;
	if (bytes > most)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "this has %" PRIu64
				     " bytes, and at most %u are recorded of it; write members or a "
				     "piece, such as buf(p, %d)",
				     bytes, most, KYMO_FETCH_LIMIT_MAX);
	reader->out.limit = (uint16_t)bytes;
	reader->out.ends_at_null = type.ends_at_null;
	return choose_elements(reader, type);
}

/* A type after an expression is for numbers. */
static struct kymo_error *refuse_memory_type(const struct kymo_spec_reader *reader)
{
	if (reader->out.type == KYMO_TYPE_STRING)
		return kymo_error_at(reader->text, reader->type.start, "'%.*s' is text; leave the type out",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	if (kymo_spec_piece_is(reader->type, "string") || kymo_spec_piece_is(reader->type, "ustring"))
		return kymo_error_at(reader->text, reader->type.start, "write str(%.*s) for the text that it points to",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	if (kymo_fetch_is_of_memory(&reader->out))
		return kymo_error_at(reader->text, reader->type.start,
				     "memory as a whole has no type; leave it out, or write one of its parts");
	return NULL;
}

static struct kymo_error *compute(struct kymo_spec_reader *reader, struct kymo_form **form_ret)
{
	struct kymo_expr_type type;
	struct kymo_error *error =
		reader->assigns
			? kymo_spec_assignment_compile(reader->text, reader->fetch, reader->spec, form_ret, &type)
			: kymo_spec_value_compile(reader->text, reader->fetch, reader->spec, NULL, form_ret, &type);

	if (error)
		return error;
	reader->out.kind = KYMO_FETCH_FORM;
	reader->out.form = *form_ret;
	return record_as(reader, type);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct kymo_error *check_form(const struct kymo_spec_reader *reader)
{
	if (kymo_form_check(reader->form, KYMO_FETCH_REGISTERS, KYMO_FETCH_STACK_MAX))
		return NULL;
	return kymo_error_at(reader->text, reader->fetch.start, "'%.*s' takes too many steps",
			     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
}

/* Whether it is the duration of the call that a return ends. */
static bool is_duration(const struct kymo_spec_reader *reader)
{
	return reader->spec->is_return && kymo_spec_piece_is(reader->fetch, "duration");
}

/* The duration of a call: pads do not know it, and record a fault in its place. */
static struct kymo_error *take_duration(struct kymo_spec_reader *reader, struct kymo_form **form_ret)
{
	struct kymo_form *form = malloc(sizeof(*form));

	if (!form)
		return &kymo_error_no_memory;
	*form = (struct kymo_form){
		.n = 3,
		.ops = { { .code = KYMO_FORM_VALUE }, { .code = KYMO_FORM_VALUE }, { .code = KYMO_FORM_DIVIDE } },
	};
	reader->out.kind = KYMO_FETCH_FORM;
	reader->out.form = form;
	reader->out.type = KYMO_TYPE_U64;
	*form_ret = form;
	return NULL;
}

#define ENTRY "entry("

/* Whether it is what was there at the entry of the call that a return ends. */
static bool is_entry_value(const struct kymo_spec_reader *reader)
{
	const char *at = reader->fetch.start + strlen(ENTRY);
	int depth = 1;

	if (!reader->spec->is_return || !kymo_spec_piece_starts(reader->fetch, ENTRY))
		return false;
	for (; at < reader->fetch.end && depth; at++) {
		at = kymo_spec_skip_quoted(at, reader->fetch.end);
		depth += (*at == '(') - (*at == ')');
	}
	return !depth && at == reader->fetch.end;
}

static struct kymo_error *refuse_entry_value(const struct kymo_spec_reader *reader)
{
	if (!reader->spec->is_return)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "entry() is for returns, which have a call that was entered: write -r in place of "
				     "-p, or leave it out");
	return kymo_error_at(reader->text, reader->fetch.start,
			     "entry() stands alone; write what is computed within its brackets: entry(arg0 + 1)");
}

/* The comma between two values of one list, or NULL. */
static const char *find_comma(struct kymo_spec_piece list)
{
	int depth = 0;

	for (const char *at = list.start; at < list.end; at++) {
		at = kymo_spec_skip_quoted(at, list.end);
		if (at == list.end)
			break;
		depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
		if (!depth && *at == ',')
			return at;
	}
	return NULL;
}

/* Its words mean what they mean at the entry. */
static struct kymo_error *take_entry_value(struct kymo_spec_reader *reader, struct kymo_form **form_ret)
{
	struct kymo_spec *spec = reader->spec;
	const struct kymo_spec_scope *scope = spec->scope;
	const char *start = reader->fetch.start, *comma;
	struct kymo_spec_scope at_entry;
	struct kymo_error *error;

	reader->fetch.start += strlen(ENTRY);
	reader->fetch.end--;
	comma = find_comma(reader->fetch);
	if (comma)
		return kymo_error_at(reader->text, comma,
				     "entry() is one value; write another one beside it: entry(arg0) entry(arg1)");
	reader->is_of_entry = true;
	if (scope) {
		at_entry = *scope;
		at_entry.is_return = false;
		spec->scope = &at_entry;
	}
	spec->is_return = false;
	error = compute(reader, form_ret);
	spec->is_return = true;
	spec->scope = scope;
	if (!error && reader->out.type == KYMO_TYPE_BYTES)
		return kymo_error_at(reader->text, start,
				     "entry() is a number or a text, and this is memory as a whole; write its members");
	return error;
}

static struct kymo_error *read_value(struct kymo_spec_reader *reader, bool has_type, bool is_computed,
				     struct kymo_form **form)
{
	struct kymo_error *error;

	if (is_duration(reader))
		return has_type ? kymo_error_at(reader->text, reader->type.start,
						"the duration is a whole number of nanoseconds; leave the type out")
				: take_duration(reader, form);
	if (is_entry_value(reader))
		return has_type ? kymo_error_at(reader->text, reader->type.start,
						"write the type within the brackets: entry((u32)arg0)")
				: take_entry_value(reader, form);
	if (kymo_spec_piece_starts(reader->fetch, ENTRY))
		return refuse_entry_value(reader);
	error = is_computed ? compute(reader, form) : kymo_spec_fetch_read(reader);
	if (!error && has_type && is_computed)
		error = refuse_memory_type(reader);
	if (!error && has_type) { /* a type of the user's own is that of a number */
		kymo_naming_release(reader->naming);
		reader->naming = NULL;
		error = kymo_spec_fetch_read_type(reader);
	}
	if (!reader->form)
		return error;
	*form = reader->form;
	if (!error && !reader->n_elements)
		kymo_spec_fetch_load(reader, 0);
	return error || reader->n_elements ? error : check_form(reader);
}

/* What is read from memory has to fit in a pad's frame. */
static struct kymo_error *check_size(const struct kymo_spec_reader *reader)
{
	struct kymo_fetch fetches[KYMO_EVENT_MAX_ARGS + 1];
	const struct kymo_spec *spec = reader->spec;

	for (size_t i = 0; i < spec->n_args; i++)
		fetches[i] = spec->args[i].fetch;
	fetches[spec->n_args] = reader->out;
	if (kymo_pad_composed_size(fetches, spec->n_args + 1) <= KYMO_PAD_COMPOSED_MAX - 8) /* one more, for pairs */
		return NULL;
	return kymo_error_at(reader->text, reader->fetch.start,
			     "the probe would read more than %d bytes of memory, which a thread's stack may not hold; "
			     "record fewer strings and bytes",
			     KYMO_PAD_COMPOSED_MAX);
}

/* Element `i`, an argument of its own: NAME_0, NAME_1 … of the array `name` at the address that `address` has. */
static struct kymo_error *add_element(struct kymo_spec_reader *reader, const struct kymo_form *address,
				      const char *name, unsigned int i)
{
	struct kymo_spec *spec = reader->spec;
	kymo_cleanup_free struct kymo_form *form = malloc(sizeof(*form));
	kymo_cleanup_free char *its_name = NULL;
	struct kymo_error *error;

	if (spec->n_args == KYMO_EVENT_MAX_ARGS)
		return kymo_error_at(reader->text, reader->type.start,
				     "a probe records at most %d arguments, and each "
				     "element of this array is one",
				     KYMO_EVENT_MAX_ARGS);
	if (!form)
		return &kymo_error_no_memory;
	if (asprintf(&its_name, "%s_%u", name, i) < 0) {
		its_name = NULL;
		return &kymo_error_no_memory;
	}
	if (kymo_spec_arg_is_taken(spec, kymo_spec_piece_of(its_name)))
		return kymo_error_at(reader->text, reader->fetch.start, "duplicate argument name '%s'", its_name);
	*form = *address;
	reader->form = form;
	reader->out.form = form;
	kymo_spec_fetch_load(reader, i);
	error = check_form(reader);
	if (!error)
		error = check_size(reader);
	if (!error)
		spec->args[spec->n_args++] = (struct kymo_spec_arg){ .name = kymo_take(its_name),
								     .fetch = reader->out,
								     .form = kymo_take(form) };
	return error;
}

static struct kymo_error *add_elements(struct kymo_spec_reader *reader, const struct kymo_form *address,
				       const char *name)
{
	struct kymo_error *error = NULL;

	for (unsigned int i = 0; i < reader->n_elements && !error; i++)
		error = add_element(reader, address, name, i);
	return error;
}

/* Of a value that was read. */
static void add_argument(const struct kymo_spec_reader *reader, char *name, struct kymo_form *form)
{
	struct kymo_spec *spec = reader->spec;

	if (is_duration(reader))
		spec->duration = (uint8_t)(spec->n_args + 1);
	spec->args[spec->n_args++] = (struct kymo_spec_arg){
		.name = name,
		.fetch = reader->out,
		.form = form,
		.naming = reader->naming,
		.shape = reader->shape,
		.is_list = reader->is_list,
		.is_of_entry = reader->is_of_entry,
		.entry_start = (uint16_t)(reader->fetch.start - reader->text),
		.entry_size = (uint16_t)kymo_spec_piece_size(reader->fetch),
		.cut = reader->cut,
	};
}

/* Of one that was refused. */
static void forget(struct kymo_spec_reader *reader)
{
	kymo_naming_release(reader->naming);
	kymo_shape_release(reader->shape);
	free(reader->cut);
}

struct kymo_error *kymo_spec_arg_parse(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	const char *equals = find_equals(piece), *colon;
	struct kymo_spec_reader reader = { .text = text, .fetch = piece, .spec = spec };
	kymo_cleanup_free struct kymo_form *form = NULL;
	kymo_cleanup_free char *name = NULL;
	struct kymo_error *error;
	bool is_computed;

	if (spec->n_args == KYMO_EVENT_MAX_ARGS)
		return kymo_error_at(text, piece.start, "a probe records at most %d arguments", KYMO_EVENT_MAX_ARGS);
	if (equals)
		reader.fetch.start = equals + 1;
	if (is_duration(&reader) && spec->duration)
		return kymo_error_at(text, reader.fetch.start, "the duration of a call is recorded once");
	is_computed = is_expression(reader.fetch) || (spec->marker && kymo_spec_piece_starts(reader.fetch, "$arg"));
	colon = is_computed ? find_type(reader.fetch)
			    : memchr(reader.fetch.start, ':', kymo_spec_piece_size(reader.fetch));
	if (colon) {
		reader.type = (struct kymo_spec_piece){ colon + 1, reader.fetch.end };
		reader.fetch.end = colon;
	}
	reader.out.type = KYMO_TYPE_X64;
	if (equals)
		error = kymo_spec_arg_read_name(text, (struct kymo_spec_piece){ piece.start, equals }, spec, &name);
	else
		error = kymo_spec_arg_make_name(text, reader.fetch, spec, is_computed, &name);
	if (!error)
		error = read_value(&reader, colon, is_computed, &form);
	if (!error && reader.n_elements)
		return add_elements(&reader, form, name);
	if (!error)
		error = check_size(&reader);
	if (!error)
		add_argument(&reader, kymo_take(name), kymo_take(form));
	else
		forget(&reader);
	return error;
}

struct kymo_error *kymo_spec_arg_assign(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
					char *name)
{
	struct kymo_spec_reader reader = { .text = text, .fetch = piece, .spec = spec, .assigns = true };
	kymo_cleanup_free struct kymo_form *form = NULL;
	struct kymo_error *error;

	reader.out.type = KYMO_TYPE_X64;
	reader.out.writes = KYMO_WRITE_MEMORY;
	error = compute(&reader, &form);
	if (!error)
		add_argument(&reader, name, kymo_take(form));
	else
		forget(&reader);
	return error;
}

struct kymo_error *kymo_spec_arg_compute(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	struct kymo_spec_reader reader = { .text = text, .fetch = piece, .spec = spec };
	kymo_cleanup_free struct kymo_form *form = NULL;
	kymo_cleanup_free char *name = NULL;
	struct kymo_error *error = compute(&reader, &form);

	if (!error && asprintf(&name, "_value%zu", spec->n_args + 1) < 0) {
		name = NULL;
		error = &kymo_error_no_memory;
	}
	if (!error)
		add_argument(&reader, kymo_take(name), kymo_take(form));
	else
		forget(&reader);
	return error;
}
