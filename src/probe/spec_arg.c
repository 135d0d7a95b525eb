#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/spec_arg.h"
#include "probe/spec_value.h"

/* One argument while it is read. `type` is what the fetch implies until the user names one. */
struct reader {
	const char *text;
	struct kymo_spec_piece fetch, type;
	struct kymo_spec *spec; /* its place is known already */
	struct kymo_fetch out;
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

/* `±OFFS(FETCH)`: the innermost FETCH is what can be recorded instead. */
static struct kymo_error *refuse_memory(struct reader *reader)
{
	const char *open = memrchr(reader->fetch.start, '(', piece_size(reader->fetch)), *close = NULL;

	if (open)
		close = memchr(open, ')', (size_t)(reader->fetch.end - open));
	if (!close || close == open + 1)
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"memory behind a pointer is not supported yet; write a register or an argument, such as "
			"%%di or $arg1");
	return kymo_error_at(reader->text, reader->fetch.start,
			     "memory behind a pointer is not supported yet; write %.*s to record the pointer",
			     (int)(close - open - 1), open + 1);
}

static struct kymo_error *refuse_address(struct reader *reader)
{
	return kymo_error_at(
		reader->text, reader->fetch.start,
		"memory at %s is not supported yet; write a register or an argument, such as %%di or $arg1",
		piece_starts(reader->fetch, "@+") ? "a file offset" : "a fixed address");
}

/* Types that the kernel has: how they begin, what they are, what to write instead. */
static const struct {
	const char *name, *what, *instead;
} foreign_types[] = {
	{ "string", "strings are", "x64 to record the pointer" },
	{ "ustring", "strings are", "x64 to record the pointer" },
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
		return kymo_error_at(reader->text, bracket,
				     "arrays are not supported yet; leave '%.*s' out to record one value",
				     (int)(reader->type.end - bracket), bracket);
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
		return refuse_address(reader);
	case '+':
	case '-':
		return refuse_memory(reader);
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

/* An expression that is one word has that for its name; others, and what has none, are numbered. */
static struct kymo_error *make_name(const char *text, struct kymo_spec_piece piece, const struct kymo_spec *spec,
				    bool is_expression, char **ret)
{
	kymo_cleanup_free char *name = NULL;
	const char *at = piece.start, *bad;

	if (is_expression && kymo_spec_is_name(piece, &bad)) {
		name = strndup(piece.start, piece_size(piece));
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

	if (!equals || strchr("%$\\@+-(!~'", *piece.start) || (equals + 1 < piece.end && equals[1] == '=') ||
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
	if (strchr("(!~'", *c) || *c == '_' || ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z'))
		return true;
	if (*c != '%' && *c != '$')
		return false;
	for (c++; c < fetch.end; c++)
		if (strchr("+-*/%&|^<>=!?", *c))
			return true;
	return false;
}

/* The ":" before the type, outside of brackets; or NULL. */
static const char *find_type(struct kymo_spec_piece fetch)
{
	const char *found = NULL;
	int depth = 0;

	for (const char *c = fetch.start; c < fetch.end; c++) {
		if (*c == '\'' && fetch.end - c > 2 && c[2] == '\'')
			c += 2;
		depth += (*c == '(') - (*c == ')');
		if (*c == ':' && !depth && !found)
			found = c;
	}
	return found;
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
	reader->out.type = kymo_expr_record_type(type);
	return NULL;
}

/* ---- the whole -----------------------------------------------------------------------------------------------------
 */

static struct kymo_error *read_value(struct reader *reader, bool has_type, bool is_computed, struct kymo_form **form)
{
	struct kymo_error *error = is_computed ? compute(reader, form) : read_fetch(reader);

	return error || !has_type ? error : read_type(reader);
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
	if (error)
		return error;
	spec->args[spec->n_args++] = (struct kymo_spec_arg){
		.name = kymo_take(name),
		.fetch = reader.out,
		.form = kymo_take(form),
	};
	return NULL;
}
