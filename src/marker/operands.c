/*
 * SDT operands: assembler text for where a compiler keeps an argument, in gas's AT&T syntax, after the argument's
 * size. References: the wiki of SystemTap, "UserSpaceProbeImplementation", and the comments of <sys/sdt.h>; the manual
 * of gas, "Memory References" of the i386.
 *
 *	operand	[SIZE@] ( $SUM | %REGISTER | [SUM] [( [%BASE] [, %INDEX [, SCALE]] )] )
 *	SIZE	[-] 1, 2, 4, 8, with an f after it for floating point; - is signed
 *	SUM	numbers and at most one symbol, with + and - between them
 *
 * SIZE counts, whatever the width of the register's name.
 */
#include "marker/operands.h"

#include <errno.h>
#include <string.h>

#include "marker/reader.h"
#include "sym/module.h"
#include "sym/sym.h"
#include "sym/symbols.h"

static const char of_no_kind[] = "is of no kind that kymo records";
static const char unknown_symbol[] = "names a symbol that the file does not have";
static const char ambiguous_symbol[] = "names a symbol that the file has several of";
static const char outside[] = "lies outside of the program's data";
static const char thread_local_data[] = "is thread-local, which kymo does not record";

/* Text that is read from its front. */
struct text {
	const char *at, *end;
};

struct sum {
	uint64_t number; /* modulo 2^64 */
	bool has_number;
	struct text symbol; /* empty: none */
};

static bool is_at(const struct text *text, char c)
{
	return text->at < text->end && *text->at == c;
}

static bool take_char(struct text *text, char c)
{
	if (!is_at(text, c))
		return false;
	text->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_symbol(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || (unsigned char)c >= 0x80;
}

/* ---- size ------------------------------------------------------------------------------------ */

/* Of `bytes`, or X64 where no type has that size. */
static enum kymo_type type_of_size(uint64_t bytes, bool is_signed)
{
	static const struct {
		enum kymo_type is_unsigned, is_signed;
	} types[] = {
		[1] = { KYMO_TYPE_U8, KYMO_TYPE_S8 },
		[2] = { KYMO_TYPE_U16, KYMO_TYPE_S16 },
		[4] = { KYMO_TYPE_U32, KYMO_TYPE_S32 },
		[8] = { KYMO_TYPE_U64, KYMO_TYPE_S64 },
	};

	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
		return KYMO_TYPE_X64;
	return is_signed ? types[bytes].is_signed : types[bytes].is_unsigned;
}

/*
 * "-4@" and the like. Old ones are without: `has_size_ret` is false then, and a register's name tells, or it is a word.
 * False for what kymo does not record; `type_ret` is what comes nearest then.
 */
static bool read_size(struct text *text, enum kymo_type *type_ret, bool *has_size_ret)
{
	struct text rest = *text;
	bool is_signed = take_char(&rest, '-'), is_float;
	const char *digits = rest.at;
	uint64_t bytes = 0;

	while (rest.at < rest.end && is_digit(*rest.at) && rest.at - digits < 4)
		bytes = bytes * 10 + (uint64_t)(*rest.at++ - '0');
	is_float = rest.at > digits && take_char(&rest, 'f');
	if (rest.at == digits || !take_char(&rest, '@')) {
		*type_ret = KYMO_TYPE_U64;
		*has_size_ret = false;
		return true;
	}
	*text = rest;
	*has_size_ret = true;
	*type_ret = type_of_size(bytes, is_signed);
	if (!is_float)
		return *type_ret != KYMO_TYPE_X64;
	*type_ret = bytes == 8 ? KYMO_TYPE_F64 : bytes == 4 ? KYMO_TYPE_F32 : KYMO_TYPE_X32;
	return false;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Decimal, 0x…, or octal after a 0. */
static bool read_operand_number(struct text *text, uint64_t *ret)
{
	uint64_t value = 0, base = 10;
	const char *begin;

	if (is_at(text, '0') && text->end - text->at > 1) {
		base = text->at[1] == 'x' || text->at[1] == 'X' ? 16 : 8;
		text->at += base == 16 ? 2 : 0;
	}
	for (begin = text->at; text->at < text->end && (uint64_t)digit_value(*text->at) < base; text->at++)
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_value(*text->at), &value))
			return false;
	*ret = value;
	return text->at > begin;
}

static bool read_term(struct text *text, bool is_negative, struct sum *sum)
{
	uint64_t number;

	if (text->at < text->end && is_digit(*text->at)) {
		if (!read_operand_number(text, &number))
			return false;
		sum->number += is_negative ? -number : number;
		sum->has_number = true;
		return true;
	}
	if (is_negative || sum->symbol.at || text->at == text->end || !starts_symbol(*text->at))
		return false;
	sum->symbol.at = text->at;
	while (text->at < text->end && (starts_symbol(*text->at) || is_digit(*text->at) || *text->at == '$'))
		text->at++;
	sum->symbol.end = text->at;
	return true;
}

/* "8", "-20", "counter", "counter+8", "8+counter" */
static bool read_sum(struct text *text, struct sum *ret)
{
	struct sum sum = { 0 };
	bool is_negative = take_char(text, '-');

	do {
		if (!read_term(text, is_negative, &sum))
			return false;
		is_negative = is_at(text, '-');
	} while (take_char(text, '-') || take_char(text, '+'));
	*ret = sum;
	return true;
}

/* The sum with its symbol's vaddr in it. */
static int resolve_sum(struct kymo_module *module, const struct sum *sum, uint64_t *ret, const char **why_ret)
{
	size_t length = (size_t)(sum->symbol.end - sum->symbol.at);
	char name[MARKER_NAME_SIZE];
	uint64_t vaddr;
	int r = -ENOENT;

	if (length < sizeof(name)) {
		memcpy(name, sum->symbol.at, length);
		name[length] = '\0';
		r = kymo_module_only_object(module, name, &vaddr);
	}
	if (r) {
		*why_ret = r == -ENOTUNIQ ? ambiguous_symbol : unknown_symbol;
		return -EINVAL;
	}
	*ret = vaddr + sum->number;
	return 0;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* The register after a '%': its number, or -1 for those that are not general. */
static int read_register(struct text *text, enum kymo_type *type_ret)
{
	const char *begin = text->at;
	size_t length;
	int number;

	while (text->at < text->end && ((*text->at >= 'a' && *text->at <= 'z') || is_digit(*text->at)))
		text->at++;
	length = (size_t)(text->at - begin);
	number = kymo_register_parse(begin, length, type_ret);
	/* In the kernel's grammar "ax" is the whole register; in assembler it has 16 bits. */
	if (number >= 0 && number < 8 && *begin != 'r' && *type_ret == KYMO_TYPE_X64)
		*type_ret = KYMO_TYPE_X16;
	return number < 16 ? number : -1;
}

static bool is_name(struct text text, const char *name)
{
	return (size_t)(text.end - text.at) == strlen(name) && !memcmp(text.at, name, strlen(name));
}

/* A 64-bit register in an address, after a '%'. */
static bool read_address_register(struct text *text, int8_t *ret)
{
	enum kymo_type type;
	int number = read_register(text, &type);

	if (number < 0 || type != KYMO_TYPE_X64)
		return false;
	*ret = (int8_t)number;
	return true;
}

#define STACK_POINTER 4 /* never an index: its number means that there is none */

/* What stands between the parentheses, with the closing one, which ends the operand. */
static bool read_registers(struct text *text, struct kymo_fetch *fetch)
{
	uint64_t scale = 1;

	if (take_char(text, '%') && !read_address_register(text, &fetch->base))
		return false;
	if (take_char(text, ',')) {
		if (!take_char(text, '%') || !read_address_register(text, &fetch->index) ||
		    fetch->index == STACK_POINTER)
			return false;
		if (take_char(text, ',') && !read_operand_number(text, &scale))
			return false;
	}
	if (!take_char(text, ')') || text->at != text->end || (scale != 1 && scale != 2 && scale != 4 && scale != 8))
		return false;
	fetch->scale = (uint8_t)scale;
	return fetch->base >= 0 || fetch->index >= 0;
}

/* ---- operands -------------------------------------------------------------------------------- */

static int read_immediate(struct kymo_module *module, struct text *text, struct kymo_fetch *fetch, const char **why_ret)
{
	struct sum sum;
	uint64_t value;
	int r = 0;

	if (!read_sum(text, &sum) || text->at != text->end)
		return -EINVAL;
	value = sum.number;
	if (sum.symbol.at) {
		/* An address is known only where the program is linked to one. */
		if (kymo_module_is_pie(module))
			return -EINVAL;
		r = resolve_sum(module, &sum, &value, why_ret);
	}
	fetch->kind = KYMO_FETCH_IMMEDIATE;
	fetch->value = (int64_t)value;
	return r;
}

static int read_register_operand(struct text *text, bool has_size, struct kymo_fetch *fetch, const char **why_ret)
{
	enum kymo_type type;
	int number = read_register(text, &type);

	if (is_at(text, ':'))
		*why_ret = thread_local_data;
	if (number < 0 || text->at != text->end)
		return -EINVAL;
	fetch->kind = KYMO_FETCH_REGISTER;
	fetch->value = number;
	if (!has_size)
		fetch->type = type_of_size(kymo_type_size(type), false);
	return 0;
}

/* What lies at an address that is known from the file alone. */
static int make_global(const struct kymo_module *module, uint64_t vaddr, struct kymo_fetch *fetch, const char **why_ret)
{
	const struct kymo_segment *segment = kymo_module_segment_at(module, vaddr);

	if (!segment || !segment->readable ||
	    kymo_type_size(fetch->type) > segment->memory_size - (vaddr - segment->vaddr)) {
		*why_ret = outside;
		return -EINVAL;
	}
	fetch->kind = KYMO_FETCH_GLOBAL;
	fetch->value = (int64_t)vaddr;
	return 0;
}

/* "counter", "counter(%rip)": the rest, "(%rip)", has been seen. Absolute addresses are only right where the program is
 * linked to one. */
static int read_global(struct kymo_module *module, const struct sum *sum, bool is_relative, struct kymo_fetch *fetch,
		       const char **why_ret)
{
	uint64_t vaddr = sum->number;

	if (is_relative ? !sum->symbol.at : kymo_module_is_pie(module))
		return -EINVAL;
	if (sum->symbol.at && resolve_sum(module, sum, &vaddr, why_ret))
		return -EINVAL;
	return make_global(module, vaddr, fetch, why_ret);
}

static int read_memory_operand(struct kymo_module *module, struct text *text, struct kymo_fetch *fetch,
			       const char **why_ret)
{
	struct sum sum = { 0 };
	uint64_t value;

	if (!is_at(text, '(') && !read_sum(text, &sum))
		return -EINVAL;
	if (text->at == text->end)
		return read_global(module, &sum, false, fetch, why_ret);
	if (is_name(*text, "(%rip)"))
		return read_global(module, &sum, true, fetch, why_ret);
	if (!take_char(text, '(') || !read_registers(text, fetch))
		return -EINVAL;
	value = sum.number;
	if (sum.symbol.at && (kymo_module_is_pie(module) || resolve_sum(module, &sum, &value, why_ret)))
		return -EINVAL;
	/* An instruction has 32 bits for it. */
	if ((int64_t)value != (int32_t)value)
		return -EINVAL;
	fetch->kind = KYMO_FETCH_MEMORY;
	fetch->value = (int64_t)value;
	return 0;
}

bool marker_next_operand(const char **at, const char **ret, size_t *length_ret)
{
	const char *begin = *at + strspn(*at, " \t");
	const char *end = begin;
	bool inside = false;

	for (; *end && (inside || (*end != ' ' && *end != '\t')); end++)
		if (*end == '(' || *end == ')')
			inside = *end == '(';
	*at = end;
	*ret = begin;
	*length_ret = (size_t)(end - begin);
	return end > begin;
}

int marker_parse_operand(struct kymo_module *module, const char *text, size_t length, struct kymo_fetch *ret,
			 enum kymo_type *type_ret, const char **why_ret)
{
	struct kymo_fetch fetch = { .base = -1, .index = -1, .scale = 1 };
	struct text rest = { text, text + length };
	bool has_size, is_recorded = read_size(&rest, &fetch.type, &has_size);
	const char *why = of_no_kind;
	int r = -EINVAL;

	*type_ret = fetch.type;
	if (!is_recorded)
		;
	else if (take_char(&rest, '$'))
		r = read_immediate(module, &rest, &fetch, &why);
	else if (take_char(&rest, '%'))
		r = read_register_operand(&rest, has_size, &fetch, &why);
	else
		r = read_memory_operand(module, &rest, &fetch, &why);
	if (r) {
		*why_ret = why;
		return r;
	}
	*type_ret = fetch.type;
	*ret = fetch;
	return 0;
}

int kymo_marker_parse_operand(struct kymo_module *module, const char *text, size_t length, struct kymo_fetch *ret)
{
	enum kymo_type type;
	const char *why;

	return marker_parse_operand(module, text, length, ret, &type, &why);
}
