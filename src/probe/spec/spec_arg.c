#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "probe/spec/spec_arg.h"
#include "probe/spec/spec_value.h"

/* One argument while it is read. `type` is what the fetch implies until the user names one. */
struct reader {
	const char *text;
	struct kymo_spec_piece fetch, type;
	struct kymo_spec *spec; /* its place is known already */
	struct kymo_fetch out;
	struct kymo_form *form; /* of memory: the address, until the type is known; not NULL says that it is memory */
};

static size_t piece_size(struct kymo_spec_piece piece)
{
	return (size_t)(piece.end - piece.start);
}

static bool piece_is(struct kymo_spec_piece piece, const char *word)
{
	return piece_size(piece) == strlen(word) && !memcmp(piece.start, word, piece_size(piece));
}

static bool piece_starts(struct kymo_spec_piece piece, const char *word)
{
	return piece_size(piece) >= strlen(word) && !memcmp(piece.start, word, strlen(word));
}

/* ---- what the kernel's grammar has and this version has not ------------------------------------------------------ */

/* Types that the kernel has: how they begin, what they are, what to write instead. */
static const struct {
	const char *name, *what, *instead;
} foreign_types[] = {
	{ "symbol", "symbol names are", "x64 to record the address" },
	{ "symstr", "symbol names are", "x64 to record the address" },
	{ "char", "characters are", "u8 to record the code" },
};

static struct kymo_error *refuse_type(struct reader *reader)
{
	const char *bracket = memchr(reader->type.start, '[', piece_size(reader->type));

	if (reader->type.start == reader->type.end)
		return kymo_error_at(reader->text, reader->type.start,
				     "expected a type after ':', such as u32, s64 or x8");
	if (bracket)
		return kymo_error_at(
			reader->text, bracket,
			"arrays are not supported yet, but of memory as bytes, x8[1] to x8[%d]; leave '%.*s' "
			"out to record one value",
			KYMO_FETCH_LIMIT_MAX, (int)(reader->type.end - bracket), bracket);
	if (piece_is(reader->type, "string") || piece_is(reader->type, "ustring"))
		return kymo_error_at(reader->text, reader->type.start,
				     "a string is memory; write +0(%.*s):%.*s for the one that it points to",
				     (int)piece_size(reader->fetch), reader->fetch.start, (int)piece_size(reader->type),
				     reader->type.start);
	for (size_t i = 0; i < kymo_countof(foreign_types); i++)
		if (piece_is(reader->type, foreign_types[i].name))
			return kymo_error_at(reader->text, reader->type.start, "%s not supported yet; write %s",
					     foreign_types[i].what, foreign_types[i].instead);
	if (*reader->type.start == 'b' && memchr(reader->type.start, '@', piece_size(reader->type)))
		return kymo_error_at(reader->text, reader->type.start,
				     "bit fields are not supported yet; write x32 to record the whole word");
	return kymo_error_at(reader->text, reader->type.start,
			     "no type '%.*s'; write u8 u16 u32 u64, s8 s16 s32 s64 or x8 x16 x32 x64",
			     (int)piece_size(reader->type), reader->type.start);
}

/* ---- what can be recorded ---------------------------------------------------------------------------------------- */

/* The whole of `digits` as a number of `from` to `to`, for `$argN` and `$stackN`. */
static struct kymo_error *read_index(struct reader *reader, const char *digits, uint64_t from, uint64_t to,
				     const char *what)
{
	uint64_t value = 0;
	const char *end;

	if (!kymo_spec_number(digits, reader->fetch.end, &end, &value) || end != reader->fetch.end || value < from ||
	    value > to)
		return kymo_error_at(reader->text, digits, "%s are numbered $%.*s%llu to $%.*s%llu", what,
				     (int)(digits - reader->fetch.start - 1), reader->fetch.start + 1,
				     (unsigned long long)from, (int)(digits - reader->fetch.start - 1),
				     reader->fetch.start + 1, (unsigned long long)to);
	reader->out.value = (int64_t)value;
	return NULL;
}

static struct kymo_error *read_argument(struct reader *reader)
{
	const char *digits = reader->fetch.start + 4;
	const struct kymo_spec *spec = reader->spec;

	if (spec->is_return)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "arguments are gone at the return; record them at the entry with -p");
	if (spec->every_instruction)
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"'%.*s' would be right at the first instruction only; write a register, such as %%di",
			(int)piece_size(reader->fetch), reader->fetch.start);
	if (spec->symbol && spec->offset)
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"'%.*s' is known at the first instruction of a function only; write a register, such as %%di",
			(int)piece_size(reader->fetch), reader->fetch.start);
	reader->out.kind = KYMO_FETCH_ARGUMENT;
	return read_index(reader, digits, 1, 6 + KYMO_FETCH_STACK_MAX, "arguments");
}

static struct kymo_error *read_variable(struct reader *reader)
{
	if (piece_is(reader->fetch, "$retval")) {
		reader->out.kind = KYMO_FETCH_RETVAL;
		if (reader->spec->is_return)
			return NULL;
		return kymo_error_at(reader->text, reader->fetch.start,
				     "$retval is known at a function's return only; write -r or %%return");
	}
	if (piece_is(reader->fetch, "$comm") || piece_is(reader->fetch, "$COMM"))
		return kymo_error_at(reader->text, reader->fetch.start,
				     "'$comm' is not supported yet; leave it out, each record has its thread's id");
	if (piece_is(reader->fetch, "$stack")) {
		reader->out.kind = KYMO_FETCH_STACK_POINTER;
		return NULL;
	}
	if (piece_is(reader->fetch, "$arg*"))
		return kymo_error_at(reader->text, reader->fetch.start,
				     "'$arg*' is not supported yet; write the arguments one by one: $arg1 $arg2");
	if (piece_starts(reader->fetch, "$arg"))
		return read_argument(reader);
	if (piece_starts(reader->fetch, "$stack")) {
		reader->out.kind = KYMO_FETCH_STACK;
		return read_index(reader, reader->fetch.start + 6, 0, KYMO_FETCH_STACK_MAX, "words of the stack");
	}
	return kymo_error_at(reader->text, reader->fetch.start,
			     "no '%.*s'; write $arg1, $stack (the pointer) or $stack0 (the word)",
			     (int)piece_size(reader->fetch), reader->fetch.start);
}

static struct kymo_error *read_register(struct reader *reader)
{
	struct kymo_spec_piece name = { reader->fetch.start + 1, reader->fetch.end };
	int number = kymo_register_parse(name.start, piece_size(name), &reader->out.type);

	if (number < 0)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "no register '%.*s' on x86-64; write %%di, %%edi, %%al, %%r8 …",
				     (int)piece_size(reader->fetch), reader->fetch.start);
	reader->out.kind = KYMO_FETCH_REGISTER;
	reader->out.value = number;
	return NULL;
}

static struct kymo_error *read_immediate(struct reader *reader)
{
	const char *digits = reader->fetch.start + 1, *end;
	bool negative = digits < reader->fetch.end && *digits == '-';
	uint64_t value = 0;

	if (digits < reader->fetch.end && *digits == '"')
		return kymo_error_at(reader->text, digits, "text is not supported yet; write a number, such as \\42");
	digits += negative;
	if (!kymo_spec_number(digits, reader->fetch.end, &end, &value) || end != reader->fetch.end)
		return kymo_error_at(reader->text, end,
				     "expected a number of at most 64 bits after '\\', such as \\42 or \\0x2a");
	if (negative && value > (uint64_t)INT64_MAX + 1)
		return kymo_error_at(reader->text, digits, "the number does not fit in 64 bits");
	reader->out.kind = KYMO_FETCH_IMMEDIATE;
	reader->out.type = KYMO_TYPE_S64;
	reader->out.value = (int64_t)(negative ? -value : value);
	return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#define NESTED_MAX 8

static bool put(struct reader *reader, enum kymo_form_code code, uint8_t size, int64_t value)
{
	struct kymo_form *form = reader->form;

	if (form->n == KYMO_FORM_OPS_MAX)
		return false;
	form->ops[form->n++] = (struct kymo_form_op){ .code = (uint8_t)code, .size = size, .value = value };
	return true;
}

/* What was read last, a word, as the beginning of the form. */
static struct kymo_error *begin_form(struct reader *reader)
{
	const struct kymo_fetch *base = &reader->out;
	struct kymo_form_op op;

	switch (base->kind) {
	case KYMO_FETCH_REGISTER:
		if (base->value >= KYMO_FETCH_REGISTERS)
			break;
		put(reader, KYMO_FORM_REGISTER, 0, base->value);
		if (kymo_type_size(base->type) < 8)
			put(reader, KYMO_FORM_EXTEND, (uint8_t)kymo_type_size(base->type), 0);
		return NULL;
	case KYMO_FETCH_ARGUMENT:
		if (kymo_argument_operation((unsigned int)base->value, &op))
			break;
		put(reader, (enum kymo_form_code)op.code, 0, op.value);
		return NULL;
	case KYMO_FETCH_STACK:
		put(reader, KYMO_FORM_STACK, 0, base->value);
		return NULL;
	case KYMO_FETCH_STACK_POINTER:
		put(reader, KYMO_FORM_REGISTER, 0, KYMO_STACK_POINTER);
		return NULL;
	case KYMO_FETCH_RETVAL:
		put(reader, KYMO_FORM_RETVAL, 0, 0);
		return NULL;
	default:
		break;
	}
	return kymo_error_at(reader->text, reader->fetch.start,
			     "'%.*s' is no address; write a register, an argument or a word of the stack, such as "
			     "+8(%%di)",
			     (int)piece_size(reader->fetch), reader->fetch.start);
}

/* "@ADDR" */
static struct kymo_error *read_address(struct reader *reader)
{
	const char *digits = reader->fetch.start + 1, *end;
	uint64_t value = 0;

	if (piece_starts(reader->fetch, "@+"))
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"memory at a file offset is not supported yet; write an address, such as @0x4040a0");
	if (!kymo_spec_number(digits, reader->fetch.end, &end, &value) || end != reader->fetch.end)
		return kymo_error_at(reader->text, digits, "expected an address after '@', such as @0x4040a0");
	put(reader, KYMO_FORM_VALUE, 0, (int64_t)value);
	return NULL;
}

/* The offset of "+8(…)", "-8(…)", "+u8(…)"; `reader->fetch` becomes what is within the brackets. */
static struct kymo_error *read_offset(struct reader *reader, int64_t *ret)
{
	const char *at = reader->fetch.start, *end;
	const bool is_negative = *at == '-';
	uint64_t value = 0;

	at++;
	at += at < reader->fetch.end && *at == 'u';
	if (!kymo_spec_number(at, reader->fetch.end, &end, &value) || value > INT32_MAX)
		return kymo_error_at(reader->text, at,
				     "expected an offset of at most 31 bits and what it is from, such as +8(%%di)");
	if (end == reader->fetch.end || *end != '(' || reader->fetch.end[-1] != ')')
		return kymo_error_at(reader->text, end == reader->fetch.end || *end != '(' ? end : reader->fetch.end,
				     "expected what the offset is from, in brackets, such as +8(%%di)");
	reader->fetch = (struct kymo_spec_piece){ end + 1, reader->fetch.end - 1 };
	*ret = is_negative ? -(int64_t)value : (int64_t)value;
	return NULL;
}

static struct kymo_error *read_base(struct reader *reader)
{
	struct kymo_error *error;

	if (reader->fetch.start == reader->fetch.end)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what the offset is from, such as +8(%%di)");
	if (*reader->fetch.start == '%')
		error = read_register(reader);
	else if (*reader->fetch.start == '$')
		error = read_variable(reader);
	else
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what the offset is from, such as +8(%%di) or +0(+8(%%di))");
	return error ? error : begin_form(reader);
}

/* All of it but the last load: its size comes with the type. */
static struct kymo_error *read_memory(struct reader *reader)
{
	const struct kymo_spec_piece whole = reader->fetch;
	int64_t offsets[NESTED_MAX];
	struct kymo_error *error = NULL;
	size_t n = 0;

	reader->form = calloc(1, sizeof(*reader->form));
	if (!reader->form)
		return &kymo_error_no_memory;
	while (!error && reader->fetch.start < reader->fetch.end && strchr("+-", *reader->fetch.start)) {
		if (n == NESTED_MAX)
			return kymo_error_at(reader->text, reader->fetch.start,
					     "at most %d addresses may be within one another", NESTED_MAX);
		error = read_offset(reader, &offsets[n++]);
	}
	if (!error && reader->fetch.start < reader->fetch.end && *reader->fetch.start == '@') {
		error = read_address(reader);
		if (n)
			put(reader, KYMO_FORM_LOAD, 8, 0);
	} else if (!error) {
		error = read_base(reader);
	}
	while (!error && n) {
		put(reader, KYMO_FORM_VALUE, 0, offsets[--n]);
		put(reader, KYMO_FORM_ADD, 8, 0);
		if (n)
			put(reader, KYMO_FORM_LOAD, 8, 0);
	}
	reader->fetch = whole;
	reader->out = (struct kymo_fetch){ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_X64, .form = reader->form };
	return error;
}

/* "x8[N]": N bytes. */
static bool read_bytes_type(struct reader *reader)
{
	const char *end;
	uint64_t n = 0;

	if (!piece_starts(reader->type, "x8[") || reader->type.end[-1] != ']' ||
	    !kymo_spec_number(reader->type.start + 3, reader->type.end - 1, &end, &n) || end != reader->type.end - 1 ||
	    !n || n > KYMO_FETCH_LIMIT_MAX)
		return false;
	reader->out.type = KYMO_TYPE_BYTES;
	reader->out.limit = (uint16_t)n;
	return true;
}

/* A type that only memory has. */
static bool read_memory_type(struct reader *reader)
{
	if (!reader->form)
		return false;
	if (!piece_is(reader->type, "string") && !piece_is(reader->type, "ustring"))
		return read_bytes_type(reader);
	reader->out.type = KYMO_TYPE_STRING;
	reader->out.limit = KYMO_FETCH_LIMIT;
	return true;
}

static struct kymo_error *read_fetch(struct reader *reader)
{
	if (reader->fetch.start == reader->fetch.end)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what to record: %%REGISTER, $argN, $stack, $stackN or \\NUMBER");
	switch (*reader->fetch.start) {
	case '%':
		return read_register(reader);
	case '$':
		return read_variable(reader);
	case '\\':
		return read_immediate(reader);
	case '@':
	case '+':
	case '-':
		return read_memory(reader);
	case '0' ... '9':
		return kymo_error_at(reader->text, reader->fetch.start,
				     "a number is written with a backslash before it: \\%.*s",
				     (int)piece_size(reader->fetch), reader->fetch.start);
	default:
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what to record: arg0, %%REGISTER, $stackN, \\NUMBER or (EXPRESSION)");
	}
}

/* Whether the immediate keeps its value in `type`, read as signed or unsigned. */
static bool fits(int64_t value, enum kymo_type type)
{
	unsigned int bits = 8 * kymo_type_size(type);

	return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << bits);
}

static struct kymo_error *read_type(struct reader *reader)
{
	int type = kymo_type_parse(reader->type.start, (uint32_t)piece_size(reader->type));

	if (read_memory_type(reader))
		return NULL;
	if (type < 0)
		return refuse_type(reader);
	if (reader->out.kind == KYMO_FETCH_REGISTER &&
	    kymo_type_size((enum kymo_type)type) > kymo_type_size(reader->out.type))
		return kymo_error_at(reader->text, reader->type.start, "%s is wider than %.*s, which has %u bits",
				     kymo_type_name((enum kymo_type)type), (int)piece_size(reader->fetch),
				     reader->fetch.start, 8 * kymo_type_size(reader->out.type));
	if (reader->out.kind == KYMO_FETCH_IMMEDIATE && !fits(reader->out.value, (enum kymo_type)type))
		return kymo_error_at(reader->text, reader->fetch.start + 1, "the number does not fit in %s",
				     kymo_type_name((enum kymo_type)type));
	reader->out.type = (enum kymo_type)type;
	return NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool name_is_taken(const struct kymo_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->n_args; i++)
		if (!strcmp(spec->args[i].name, name))
			return true;
	return false;
}

static struct kymo_error *read_name(const char *text, struct kymo_spec_piece name, const struct kymo_spec *spec,
				    char **ret)
{
	kymo_cleanup_free char *copy = NULL;
	const char *bad;

	if (!kymo_spec_is_name(name, &bad))
		return kymo_error_at(text, bad,
				     "the name of an argument has letters, digits and '_' only, no digit first");
	if (piece_size(name) > KYMO_SPEC_NAME_MAX)
		return kymo_error_at(text, name.start + KYMO_SPEC_NAME_MAX,
				     "the name of an argument has at most %d characters", KYMO_SPEC_NAME_MAX);
	copy = strndup(name.start, piece_size(name));
	if (!copy)
		return &kymo_error_no_memory;
	if (!strcmp(copy, KYMO_STACK_POINTER_FIELD))
		return kymo_error_at(text, name.start,
				     "'%s' is the name of a value that kymo records by itself; use another", copy);
	if (name_is_taken(spec, copy))
		return kymo_error_at(text, name.start, "duplicate argument name '%s'", copy);
	*ret = kymo_take(copy);
	return NULL;
}

static bool is_word(char c)
{
	return c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || kymo_spec_is_digit(c);
}

/* Whether the sign at `at`, a star or an ampersand, leads to what is behind it, and does not join two values. */
static bool is_prefix(struct kymo_spec_piece piece, const char *at, bool has_value)
{
	while (at < piece.end && (*at == '*' || *at == '&' || *at == ' '))
		at++;
	return !has_value || (at < piece.end && *at == ')');
}

/* What an expression would be called: its last name, where it has nothing but names, members, elements and the like,
 * "id" of "c->id", "name" of "str(c->name)". Empty: it has more. */
static struct kymo_spec_piece name_of(struct kymo_spec_piece piece)
{
	struct kymo_spec_piece found = { piece.start, piece.start }, none = found;
	int depth = 0;

	for (const char *c = piece.start; c < piece.end; c++) {
		const char *word = c;

		depth += (*c == '[') - (*c == ']');
		while (c < piece.end && is_word(*c))
			c++;
		if (c > word) {
			const bool is_call = c < piece.end && *c == '(';

			if (piece_is((struct kymo_spec_piece){ word, c }, "sizeof"))
				return none;
			if (!depth && !is_call && !kymo_spec_is_digit(*word))
				found = (struct kymo_spec_piece){ word, c };
			c--;
		} else if (*c == '-' && c + 1 < piece.end && c[1] == '>') {
			c++;
		} else if (!depth && ((*c != '*' && *c != '&') || !is_prefix(piece, c, piece_size(found) > 0)) &&
			   !strchr(".[](),: ", *c)) {
			return none;
		}
	}
	return found;
}

static bool is_taken(const struct kymo_spec *spec, struct kymo_spec_piece name)
{
	for (size_t i = 0; i < spec->n_args; i++)
		if (piece_is(name, spec->args[i].name))
			return true;
	return piece_is(name, KYMO_STACK_POINTER_FIELD);
}

/* An expression is called by its last name; one that has none, and what is none, are numbered. */
static struct kymo_error *make_name(const char *text, struct kymo_spec_piece piece, const struct kymo_spec *spec,
				    bool is_expression, char **ret)
{
	kymo_cleanup_free char *name = NULL;
	const char *at = piece.start;
	struct kymo_spec_piece word = { NULL, NULL };

	if (is_expression)
		word = name_of(piece);
	if (piece_size(word) != piece_size(piece) && is_taken(spec, word))
		word.end = word.start;
	if (piece_size(word) && piece_size(word) <= KYMO_SPEC_NAME_MAX) {
		name = strndup(word.start, piece_size(word));
		if (!name)
			return &kymo_error_no_memory;
	} else if (asprintf(&name, is_expression ? "value%zu" : "arg%zu", spec->n_args + 1) < 0) {
		name = NULL;
		return &kymo_error_no_memory;
	}
	if (name_is_taken(spec, name))
		return kymo_error_at(text, at,
				     "this argument would be called '%s' as another one is; name it: NAME=...", name);
	*ret = kymo_take(name);
	return NULL;
}

/* ---- expressions ---------------------------------------------------------------------------------------------------
 */

/* The "=" behind a name, which is no comparison; or NULL. */
static const char *find_equals(struct kymo_spec_piece piece)
{
	const char *equals = memchr(piece.start, '=', piece_size(piece));

	if (!equals || strchr("%$\\@+-(!~'*&\"", *piece.start) || (equals + 1 < piece.end && equals[1] == '=') ||
	    (equals > piece.start && strchr("<>!", equals[-1])))
		return NULL;
	return equals;
}

/* Anything but what the kernel's grammar has: that begins with a sign of its own, and has no operators. */
static bool is_expression(struct kymo_spec_piece fetch)
{
	const char *c = fetch.start;

	if (c == fetch.end || strchr("\\@+-", *c) || kymo_spec_is_digit(*c) || piece_is(fetch, "$arg*"))
		return false;
	if (strchr("(!~'*&\"", *c) || *c == '_' || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
		return true;
	if (*c != '%' && *c != '$')
		return false;
	for (c++; c < fetch.end; c++)
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

/* How the value is recorded: of a text, a structure or an array it is the address. */
static struct kymo_error *record_as(struct reader *reader, struct kymo_expr_type type)
{
	const uint64_t bytes = type.is_string ? (type.n ? type.n : KYMO_FETCH_LIMIT) : kymo_expr_type_bytes(type);

	if (type.of == &kymo_expr_later)
		return NULL;
	reader->out.type = kymo_expr_record_type(type);
	if (!kymo_fetch_is_of_memory(&reader->out))
		return NULL;
	if (bytes > KYMO_FETCH_LIMIT_MAX)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "this has %" PRIu64
				     " bytes, and at most %d are recorded of it; write members or a "
				     "piece, such as buf(p, %d)",
				     bytes, KYMO_FETCH_LIMIT_MAX, KYMO_FETCH_LIMIT_MAX);
	reader->out.limit = (uint16_t)bytes;
	return NULL;
}

/* A type behind an expression is for numbers. */
static struct kymo_error *refuse_memory_type(const struct reader *reader)
{
	if (piece_is(reader->type, "string") || piece_is(reader->type, "ustring"))
		return kymo_error_at(reader->text, reader->type.start, "write str(%.*s) for the text that it points to",
				     (int)piece_size(reader->fetch), reader->fetch.start);
	if (kymo_fetch_is_of_memory(&reader->out))
		return kymo_error_at(reader->text, reader->type.start,
				     "memory as a whole has no type; leave it out, or write one of its parts");
	return NULL;
}

static struct kymo_error *compute(struct reader *reader, struct kymo_form **form_ret)
{
	struct kymo_expr_type type;
	struct kymo_error *error =
		kymo_spec_value_compile(reader->text, reader->fetch, reader->spec, NULL, form_ret, &type);

	if (error)
		return error;
	reader->out.kind = KYMO_FETCH_FORM;
	reader->out.form = *form_ret;
	return record_as(reader, type);
}

/* ---- the whole -----------------------------------------------------------------------------------------------------
 */

static struct kymo_error *read_value(struct reader *reader, bool has_type, bool is_computed, struct kymo_form **form)
{
	struct kymo_error *error = is_computed ? compute(reader, form) : read_fetch(reader);

	if (!error && has_type && is_computed)
		error = refuse_memory_type(reader);
	if (!error && has_type)
		error = read_type(reader);
	if (!reader->form)
		return error;
	*form = reader->form;
	if (!error && !kymo_fetch_is_of_memory(&reader->out))
		put(reader, KYMO_FORM_LOAD, (uint8_t)kymo_type_size(reader->out.type), 0);
	if (error || kymo_form_check(*form, KYMO_FETCH_REGISTERS, KYMO_FETCH_STACK_MAX))
		return error;
	return kymo_error_at(reader->text, reader->fetch.start, "'%.*s' takes too many steps",
			     (int)piece_size(reader->fetch), reader->fetch.start);
}

/* What is read from memory has to fit in a pad's frame. */
static struct kymo_error *check_size(const struct reader *reader)
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

struct kymo_error *kymo_spec_arg_parse(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	const char *equals = find_equals(piece), *colon;
	struct reader reader = { .text = text, .fetch = piece, .spec = spec };
	kymo_cleanup_free struct kymo_form *form = NULL;
	kymo_cleanup_free char *name = NULL;
	struct kymo_error *error;
	bool is_computed;

	if (spec->n_args == KYMO_EVENT_MAX_ARGS)
		return kymo_error_at(text, piece.start, "a probe records at most %d arguments", KYMO_EVENT_MAX_ARGS);
	if (equals)
		reader.fetch.start = equals + 1;
	is_computed = is_expression(reader.fetch);
	colon = is_computed ? find_type(reader.fetch) : memchr(reader.fetch.start, ':', piece_size(reader.fetch));
	if (colon) {
		reader.type = (struct kymo_spec_piece){ colon + 1, reader.fetch.end };
		reader.fetch.end = colon;
	}
	reader.out.type = KYMO_TYPE_X64;
	if (equals)
		error = read_name(text, (struct kymo_spec_piece){ piece.start, equals }, spec, &name);
	else
		error = make_name(text, reader.fetch, spec, is_computed, &name);
	if (!error)
		error = read_value(&reader, colon, is_computed, &form);
	if (!error)
		error = check_size(&reader);
	if (error)
		return error;
	spec->args[spec->n_args++] = (struct kymo_spec_arg){
		.name = kymo_take(name),
		.fetch = reader.out,
		.form = kymo_take(form),
	};
	return NULL;
}

struct kymo_error *kymo_spec_arg_compute(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	struct reader reader = { .text = text, .fetch = piece, .spec = spec };
	kymo_cleanup_free struct kymo_form *form = NULL;
	kymo_cleanup_free char *name = NULL;
	struct kymo_error *error = compute(&reader, &form);

	if (error)
		return error;
	if (asprintf(&name, "_value%zu", spec->n_args + 1) < 0) {
		name = NULL;
		return &kymo_error_no_memory;
	}
	spec->args[spec->n_args++] = (struct kymo_spec_arg){
		.name = kymo_take(name),
		.fetch = reader.out,
		.form = kymo_take(form),
	};
	return NULL;
}
