#include "probe/spec/spec_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"

/* ---- types ----------------------------------------------------------------------------------- */

static struct kymo_error *refuse_type(struct kymo_spec_reader *reader)
{
	const char *bracket = memchr(reader->type.start, '[', kymo_spec_piece_size(reader->type));

	if (reader->type.start == reader->type.end)
		return kymo_error_at(reader->text, reader->type.start,
				     "expected a type after ':', such as u32, s64 or x8");
	if (bracket && !reader->is_memory)
		return kymo_error_at(reader->text, bracket,
				     "an array is in memory; write +0(%.*s):%.*s for the one that it points to",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start,
				     (int)kymo_spec_piece_size(reader->type), reader->type.start);
	if (bracket)
		return kymo_error_at(reader->text, reader->type.start,
				     "no array '%.*s'; write an integer type or char and how many, such as u32[4], of "
				     "%d bytes at most",
				     (int)kymo_spec_piece_size(reader->type), reader->type.start, KYMO_FETCH_LIMIT_MAX);
	if (kymo_spec_piece_is(reader->type, "string") || kymo_spec_piece_is(reader->type, "ustring"))
		return kymo_error_at(reader->text, reader->type.start,
				     "a string is memory; write +0(%.*s):%.*s for the one that it points to",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start,
				     (int)kymo_spec_piece_size(reader->type), reader->type.start);
	if (kymo_spec_piece_is(reader->type, "symbol") || kymo_spec_piece_is(reader->type, "symstr"))
		return kymo_error_at(reader->text, reader->type.start,
				     "%.*s is for addresses in the kernel, which does not take it in a program either; "
				     "write x64",
				     (int)kymo_spec_piece_size(reader->type), reader->type.start);
	return kymo_error_at(reader->text, reader->type.start,
			     "no type '%.*s'; write u8 u16 u32 u64, s8 s16 s32 s64 or x8 x16 x32 x64",
			     (int)kymo_spec_piece_size(reader->type), reader->type.start);
}

/* ---- what can be recorded -------------------------------------------------------------------- */

/* The whole of `digits` as a number of `from` to `to`, for `$argN` and `$stackN`. */
static struct kymo_error *read_index(struct kymo_spec_reader *reader, const char *digits, uint64_t from, uint64_t to,
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

static struct kymo_error *read_argument(struct kymo_spec_reader *reader)
{
	const char *digits = reader->fetch.start + 4;
	const struct kymo_spec *spec = reader->spec;

	if (spec->marker)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "arguments of SDT probes are known to expressions: write str(arg0) or "
				     "*(int *)(arg0 + 8)");
	if (spec->is_return)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "arguments are gone at the return; entry(arg0) is what the entry had");
	if (spec->every_instruction)
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"'%.*s' would be right at the first instruction only; write a register, such as %%di",
			(int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	if (spec->symbol && spec->offset)
		return kymo_error_at(
			reader->text, reader->fetch.start,
			"'%.*s' is known at the first instruction of a function only; write a register, such as %%di",
			(int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	reader->out.kind = KYMO_FETCH_ARGUMENT;
	return read_index(reader, digits, 1, 6 + KYMO_FETCH_STACK_MAX, "arguments");
}

static bool is_name_of_thread(const struct kymo_spec_reader *reader)
{
	return kymo_spec_piece_is(reader->fetch, "$comm") || kymo_spec_piece_is(reader->fetch, "$COMM");
}

static struct kymo_error *read_variable(struct kymo_spec_reader *reader)
{
	if (kymo_spec_piece_is(reader->fetch, "$retval")) {
		reader->out.kind = KYMO_FETCH_RETVAL;
		reader->spec->has_raw_retval = true;
		if (reader->spec->is_return)
			return NULL;
		return kymo_error_at(reader->text, reader->fetch.start,
				     "$retval is known at a function's return only; write -r or %%return");
	}
	if (is_name_of_thread(reader))
		return kymo_error_at(reader->text, reader->fetch.start, "'%.*s' is text, and no address",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	if (kymo_spec_piece_is(reader->fetch, "$stack")) {
		reader->out.kind = KYMO_FETCH_STACK_POINTER;
		return NULL;
	}
	if (kymo_spec_piece_is(reader->fetch, "$arg*"))
		return kymo_error_at(reader->text, reader->fetch.start,
				     "'$arg*' is not supported yet; write the arguments one by one: $arg1 $arg2");
	if (kymo_spec_piece_starts(reader->fetch, "$arg"))
		return read_argument(reader);
	if (kymo_spec_piece_starts(reader->fetch, "$stack")) {
		reader->out.kind = KYMO_FETCH_STACK;
		return read_index(reader, reader->fetch.start + 6, 0, KYMO_FETCH_STACK_MAX, "words of the stack");
	}
	if (kymo_spec_piece_starts(reader->fetch, "$retval."))
		return kymo_error_at(reader->text, reader->fetch.start,
				     "a member of what the function returns is an expression: write ($retval)%.*s",
				     (int)kymo_spec_piece_size(reader->fetch) - 7, reader->fetch.start + 7);
	return kymo_error_at(reader->text, reader->fetch.start,
			     "no '%.*s'; write $arg1, $stack (the pointer) or $stack0 (the word)",
			     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
}

static struct kymo_error *read_register(struct kymo_spec_reader *reader)
{
	struct kymo_spec_piece name = { reader->fetch.start + 1, reader->fetch.end };
	int number = kymo_register_parse(name.start, kymo_spec_piece_size(name), &reader->out.type);
	uint64_t value;

	if (kymo_register_constant(name.start, kymo_spec_piece_size(name), &value)) {
		reader->out.kind = KYMO_FETCH_IMMEDIATE;
		reader->out.value = (int64_t)value;
		return NULL;
	}
	if (number < 0)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "no register '%.*s' on x86-64; write %%di, %%edi, %%al, %%r8 …",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	reader->out.kind = KYMO_FETCH_REGISTER;
	reader->out.value = number;
	return NULL;
}

static struct kymo_error *read_immediate(struct kymo_spec_reader *reader)
{
	const char *digits = reader->fetch.start + 1, *end;
	bool negative = digits < reader->fetch.end && *digits == '-';
	uint64_t value = 0;

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

static bool is_fixed_text(const struct kymo_spec_reader *reader)
{
	return kymo_spec_piece_starts(reader->fetch, "\\\"");
}

/* A form of one operation, whose value is a text. */
static struct kymo_error *make_text(struct kymo_spec_reader *reader, enum kymo_form_code code, int64_t value,
				    uint16_t limit)
{
	reader->form = calloc(1, sizeof(*reader->form));
	if (!reader->form)
		return &kymo_error_no_memory;
	kymo_spec_fetch_put(reader, code, 0, value);
	reader->out = (struct kymo_fetch){
		.kind = KYMO_FETCH_FORM,
		.type = KYMO_TYPE_STRING,
		.form = reader->form,
		.limit = limit,
	};
	return NULL;
}

/* \"text" */
static struct kymo_error *read_fixed_text(struct kymo_spec_reader *reader)
{
	const char *const start = reader->fetch.start + 2, *const end = reader->fetch.end - 1;
	struct kymo_error *error;

	if (end < start || *end != '"' || memchr(start, '"', (size_t)(end - start)))
		return kymo_error_at(reader->text, reader->fetch.end,
				     "expected '\"' at the end of the text, as in \\\"text\"");
	if (end - start > KYMO_FORM_TEXT_MAX)
		return kymo_error_at(reader->text, start + KYMO_FORM_TEXT_MAX, "the text has at most %d bytes",
				     KYMO_FORM_TEXT_MAX);
	error = make_text(reader, KYMO_FORM_TEXT, 0, KYMO_FORM_TEXT_MAX);
	if (!error)
		memcpy(reader->form->text, start, (size_t)(end - start));
	return error;
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define WITH_BLANKS "; an expression with blanks stands in brackets, as in (a + b)"
#define NESTED_MAX 8

bool kymo_spec_fetch_put(struct kymo_spec_reader *reader, enum kymo_form_code code, uint8_t size, int64_t value)
{
	struct kymo_form *form = reader->form;

	if (form->n == KYMO_FORM_OPS_MAX)
		return false;
	form->ops[form->n++] = (struct kymo_form_op){ .code = (uint8_t)code, .size = size, .value = value };
	return true;
}

/* "$comm": text, as memory is that a register points to. */
static struct kymo_error *read_name_of_thread(struct kymo_spec_reader *reader)
{
	return make_text(reader, KYMO_FORM_ASK, KYMO_FORM_NAME, KYMO_FORM_NAME_SIZE);
}

/* What was read last, a word, as the beginning of the form. */
static struct kymo_error *begin_form(struct kymo_spec_reader *reader)
{
	const struct kymo_fetch *base = &reader->out;
	struct kymo_form_op op;

	switch (base->kind) {
	case KYMO_FETCH_REGISTER:
		if (base->value >= KYMO_FETCH_REGISTERS)
			break;
		kymo_spec_fetch_put(reader, KYMO_FORM_REGISTER, 0, base->value);
		if (kymo_type_size(base->type) < 8)
			kymo_spec_fetch_put(reader, KYMO_FORM_EXTEND, (uint8_t)kymo_type_size(base->type), 0);
		return NULL;
	case KYMO_FETCH_ARGUMENT:
		if (kymo_argument_operation((unsigned int)base->value, &op))
			break;
		kymo_spec_fetch_put(reader, (enum kymo_form_code)op.code, 0, op.value);
		return NULL;
	case KYMO_FETCH_STACK:
		kymo_spec_fetch_put(reader, KYMO_FORM_STACK, 0, base->value);
		return NULL;
	case KYMO_FETCH_STACK_POINTER:
		kymo_spec_fetch_put(reader, KYMO_FORM_REGISTER, 0, KYMO_STACK_POINTER);
		return NULL;
	case KYMO_FETCH_RETVAL:
		kymo_spec_fetch_put(reader, KYMO_FORM_RETVAL, 0, 0);
		return NULL;
	case KYMO_FETCH_IMMEDIATE:
		kymo_spec_fetch_put(reader, KYMO_FORM_VALUE, 0, base->value);
		return NULL;
	default:
		break;
	}
	return kymo_error_at(reader->text, reader->fetch.start,
			     "'%.*s' is no address; write a register, an argument or a word of the stack, such as "
			     "+8(%%di)",
			     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
}

/* "@ADDR", "@+FILEOFFSET" */
static struct kymo_error *read_address(struct kymo_spec_reader *reader)
{
	const bool is_offset = kymo_spec_piece_starts(reader->fetch, "@+");
	const char *digits = reader->fetch.start + 1, *end;
	uint64_t value = 0;

	if (is_offset && !reader->spec->file)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "this location is in no file; write an address, such as @0x4040a0");
	digits += is_offset;
	if (!is_offset && digits < reader->fetch.end && !kymo_spec_is_digit(*digits))
		return kymo_error_at(reader->text, digits,
				     "symbols after '@' are those of the kernel itself; write the name of the "
				     "variable alone, or an address, such as @0x4040a0");
	if (!kymo_spec_number(digits, reader->fetch.end, &end, &value) || end != reader->fetch.end)
		return kymo_error_at(reader->text, digits,
				     is_offset ? "expected an offset in the file after '@+', such as @+0x40a0"
					       : "expected an address after '@', such as @0x4040a0");
	kymo_spec_fetch_put(reader, is_offset ? KYMO_FORM_FILE : KYMO_FORM_VALUE, 0, (int64_t)value);
	return NULL;
}

/* The offset of "+8(…)", "-8(…)", "+u8(…)"; `reader->fetch` becomes what is within the brackets. */
static struct kymo_error *read_offset(struct kymo_spec_reader *reader, int64_t *ret)
{
	const char *at = reader->fetch.start, *end;
	const bool is_negative = *at == '-';
	uint64_t value = 0;

	at++;
	at += at < reader->fetch.end && *at == 'u';
	if (!kymo_spec_number(at, reader->fetch.end, &end, &value) || value > INT32_MAX)
		return kymo_error_at(reader->text, at,
				     "expected an offset of at most 31 bits and what it is from, such as +8(%%di)%s",
				     at == reader->fetch.end ? WITH_BLANKS : "");
	if (end == reader->fetch.end || *end != '(' || reader->fetch.end[-1] != ')')
		return kymo_error_at(reader->text, end == reader->fetch.end || *end != '(' ? end : reader->fetch.end,
				     "expected what the offset is from, in brackets, such as +8(%%di)");
	reader->fetch = (struct kymo_spec_piece){ end + 1, reader->fetch.end - 1 };
	*ret = is_negative ? -(int64_t)value : (int64_t)value;
	return NULL;
}

static struct kymo_error *read_base(struct kymo_spec_reader *reader)
{
	struct kymo_error *error;

	if (reader->fetch.start == reader->fetch.end)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what the offset is from, such as +8(%%di)");
	if (*reader->fetch.start == '%')
		error = read_register(reader);
	else if (*reader->fetch.start == '$')
		error = read_variable(reader);
	else if (*reader->fetch.start == '\\' && !is_fixed_text(reader))
		error = read_immediate(reader);
	else
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what the offset is from, such as +8(%%di) or +0(+8(%%di))");
	return error ? error : begin_form(reader);
}

/* All of it but the last load: its size comes with the type. */
static struct kymo_error *read_memory(struct kymo_spec_reader *reader)
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
			kymo_spec_fetch_put(reader, KYMO_FORM_LOAD, 8, 0);
	} else if (!error) {
		error = read_base(reader);
	}
	while (!error && n) {
		kymo_spec_fetch_put(reader, KYMO_FORM_VALUE, 0, offsets[--n]);
		kymo_spec_fetch_put(reader, KYMO_FORM_ADD, 8, 0);
		if (n)
			kymo_spec_fetch_put(reader, KYMO_FORM_LOAD, 8, 0);
	}
	reader->fetch = whole;
	reader->is_memory = true;
	reader->out = (struct kymo_fetch){ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_X64, .form = reader->form };
	return error;
}

/* "u32[N]", or "char[N]": N elements of the integer type; of x8 N bytes. */
static bool read_array_type(struct kymo_spec_reader *reader)
{
	const char *bracket = memchr(reader->type.start, '[', kymo_spec_piece_size(reader->type)), *end;
	const struct kymo_spec_piece of = { reader->type.start, bracket };
	const bool is_character = bracket && kymo_spec_piece_is(of, "char");
	uint64_t n = 0;
	int type;

	if (!bracket || reader->type.end[-1] != ']' || !kymo_spec_number(bracket + 1, reader->type.end - 1, &end, &n) ||
	    end != reader->type.end - 1 || !n)
		return false;
	type = is_character ? KYMO_TYPE_S8 : kymo_type_parse(of.start, (uint32_t)kymo_spec_piece_size(of));
	if (type < 0 || n > KYMO_FETCH_LIMIT_MAX / kymo_type_size((enum kymo_type)type))
		return false;
	reader->out.type = KYMO_TYPE_BYTES;
	reader->out.limit = (uint16_t)(n * kymo_type_size((enum kymo_type)type));
	reader->out.array_of = type == KYMO_TYPE_X8 ? 0 : KYMO_ARRAY_OF(type);
	reader->naming = is_character ? kymo_naming_characters() : NULL;
	return true;
}

/* "[N]" at the end of the type, of what becomes N arguments: it is cut off. */
static bool take_elements(struct kymo_spec_reader *reader)
{
	const char *bracket = memchr(reader->type.start, '[', kymo_spec_piece_size(reader->type)), *end;
	uint64_t n = 0;

	if (!bracket)
		return true;
	if (!reader->is_memory || reader->type.end[-1] != ']' ||
	    !kymo_spec_number(bracket + 1, reader->type.end - 1, &end, &n) || end != reader->type.end - 1 || !n ||
	    n > UINT8_MAX)
		return false;
	reader->n_elements = (uint8_t)n;
	reader->type.end = bracket;
	return true;
}

static bool is_of_texts(const struct kymo_spec_reader *reader)
{
	return kymo_spec_piece_is(reader->type, "string") || kymo_spec_piece_is(reader->type, "ustring") ||
	       kymo_spec_piece_starts(reader->type, "string[") || kymo_spec_piece_starts(reader->type, "ustring[");
}

/* A type that only memory has. */
static bool read_memory_type(struct kymo_spec_reader *reader)
{
	if (!reader->is_memory)
		return false;
	if (!is_of_texts(reader))
		return read_array_type(reader);
	if (!take_elements(reader))
		return false;
	reader->out.type = KYMO_TYPE_STRING;
	reader->out.limit = KYMO_FETCH_LIMIT;
	return true;
}

static bool is_operator(struct kymo_spec_piece piece)
{
	return strspn(piece.start, "=!<>?:/%&|^*") >= kymo_spec_piece_size(piece);
}

struct kymo_error *kymo_spec_fetch_read(struct kymo_spec_reader *reader)
{
	if (reader->fetch.start == reader->fetch.end)
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what to record: %%REGISTER, $argN, $stack, $stackN or \\NUMBER");
	switch (*reader->fetch.start) {
	case '%':
		return read_register(reader);
	case '$':
		return is_name_of_thread(reader) ? read_name_of_thread(reader) : read_variable(reader);
	case '\\':
		return is_fixed_text(reader) ? read_fixed_text(reader) : read_immediate(reader);
	case '@':
	case '+':
	case '-':
		return read_memory(reader);
	case '0' ... '9':
		return kymo_error_at(reader->text, reader->fetch.start,
				     "a number is written with a backslash before it: \\%.*s",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	default:
		return kymo_error_at(reader->text, reader->fetch.start,
				     "expected what to record: arg0, %%REGISTER, $stackN, \\NUMBER or (EXPRESSION)%s",
				     is_operator(reader->fetch) ? WITH_BLANKS : "");
	}
}

/* Whether the immediate keeps its value in `type`, read as signed or unsigned. */
static bool fits(int64_t value, enum kymo_type type)
{
	unsigned int bits = 8 * kymo_type_size(type);

	return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << bits);
}

static struct kymo_error *check_width(const struct kymo_spec_reader *reader, enum kymo_type type)
{
	if (reader->out.kind == KYMO_FETCH_REGISTER && kymo_type_size(type) > kymo_type_size(reader->out.type))
		return kymo_error_at(reader->text, reader->type.start, "%s is wider than %.*s, which has %u bits",
				     kymo_type_name(type), (int)kymo_spec_piece_size(reader->fetch),
				     reader->fetch.start, 8 * kymo_type_size(reader->out.type));
	return NULL;
}

void kymo_spec_fetch_load(struct kymo_spec_reader *reader, unsigned int i)
{
	const bool is_text = kymo_fetch_is_of_memory(&reader->out);
	const uint8_t size = is_text ? 8 : (uint8_t)kymo_type_size(reader->out.type);

	if (i) {
		kymo_spec_fetch_put(reader, KYMO_FORM_VALUE, 0, size * (int64_t)i);
		kymo_spec_fetch_put(reader, KYMO_FORM_ADD, 8, 0);
	}
	if (reader->is_memory && (!is_text || reader->n_elements))
		kymo_spec_fetch_put(reader, KYMO_FORM_LOAD, size, 0);
	if (!reader->bits)
		return;
	kymo_spec_fetch_put(reader, KYMO_FORM_VALUE, 0, 64 - reader->bits - reader->first_bit);
	kymo_spec_fetch_put(reader, KYMO_FORM_SHIFT_LEFT, 8, 0);
	kymo_spec_fetch_put(reader, KYMO_FORM_VALUE, 0, 64 - reader->bits);
	kymo_spec_fetch_put(reader, KYMO_FORM_SHIFT_RIGHT, 8, 0);
}

/* "b3@4/32": 3 bits from bit 4 on, of 32. */
static struct kymo_error *read_bits(struct kymo_spec_reader *reader)
{
	static const enum kymo_type types[] = { KYMO_TYPE_U8, KYMO_TYPE_U16, KYMO_TYPE_U32, KYMO_TYPE_U64 };
	const char *at = reader->type.start + 1, *end;
	uint64_t bits = 0, first = 0, of = 0;
	struct kymo_error *error;
	unsigned int i = 0;

	if (!take_elements(reader))
		return refuse_type(reader);
	end = reader->type.end;
	if (!kymo_spec_number(at, end, &at, &bits) || at == end || *at++ != '@' ||
	    !kymo_spec_number(at, end, &at, &first) || at == end || *at++ != '/' ||
	    !kymo_spec_number(at, end, &at, &of) || at != end)
		return kymo_error_at(reader->text, at,
				     "expected a bit-field as bBITS@FIRST/OF, such as b3@4/32 for 3 of 32 bits from "
				     "bit 4 on");
	while (i < kymo_countof(types) && 8 * kymo_type_size(types[i]) != of)
		i++;
	if (i == kymo_countof(types))
		return kymo_error_at(reader->text, reader->type.start, "a bit-field is of 8, 16, 32 or 64 bits");
	if (!bits || bits > of || first > of - bits)
		return kymo_error_at(reader->text, reader->type.start, "these bits are not within %d",
				     8 * (int)kymo_type_size(types[i]));
	if (!reader->is_memory && (reader->out.kind == KYMO_FETCH_FORM || reader->out.kind == KYMO_FETCH_IMMEDIATE))
		return kymo_error_at(reader->text, reader->type.start,
				     "a bit-field is of a register or of memory; write the expression with >> and &");
	if (!reader->is_memory && reader->out.kind == KYMO_FETCH_REGISTER && reader->out.value >= KYMO_FETCH_REGISTERS)
		return kymo_error_at(reader->text, reader->type.start, "'%.*s' has no bit-fields; record it whole",
				     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
	error = check_width(reader, types[i]);
	if (!error && !reader->is_memory) {
		reader->form = calloc(1, sizeof(*reader->form));
		if (!reader->form)
			return &kymo_error_no_memory;
		error = begin_form(reader);
	}
	reader->bits = (uint8_t)bits;
	reader->first_bit = (uint8_t)first;
	reader->out = (struct kymo_fetch){ .kind = KYMO_FETCH_FORM, .type = types[i], .form = reader->form };
	return error;
}

/* Of what is text without a type. */
static struct kymo_error *read_text_type(struct kymo_spec_reader *reader)
{
	if (kymo_spec_piece_is(reader->type, "string"))
		return NULL;
	return kymo_error_at(reader->text, reader->type.start, "'%.*s' is text; leave the type out, or write string",
			     (int)kymo_spec_piece_size(reader->fetch), reader->fetch.start);
}

struct kymo_error *kymo_spec_fetch_read_type(struct kymo_spec_reader *reader)
{
	const bool is_character = kymo_spec_piece_is(reader->type, "char");
	int type = is_character ? KYMO_TYPE_S8
				: kymo_type_parse(reader->type.start, (uint32_t)kymo_spec_piece_size(reader->type));
	struct kymo_error *error;

	if (is_name_of_thread(reader) || is_fixed_text(reader))
		return read_text_type(reader);
	if (read_memory_type(reader))
		return NULL;
	reader->naming = is_character ? kymo_naming_characters() : NULL;
	if (kymo_spec_piece_starts(reader->type, "b") && kymo_spec_piece_size(reader->type) > 1 &&
	    kymo_spec_is_digit(reader->type.start[1]))
		return read_bits(reader);
	if (type < 0)
		return refuse_type(reader);
	error = check_width(reader, (enum kymo_type)type);
	if (error)
		return error;
	if (reader->out.kind == KYMO_FETCH_IMMEDIATE && !fits(reader->out.value, (enum kymo_type)type))
		return kymo_error_at(reader->text, reader->fetch.start + 1, "the number does not fit in %s",
				     kymo_type_name((enum kymo_type)type));
	reader->out.type = (enum kymo_type)type;
	return NULL;
}
