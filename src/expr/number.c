/* Constants: numbers with their suffixes, characters and texts (ISO C 6.4.4, 6.4.5). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "expr/number.h"

#define REAL_MAX 64

/* What stands after a number, and what it does. */
static const struct {
	const char *text;
	uint64_t factor;
	bool is_unsigned, is_long;
} suffixes[] = {
	{ "u", 1, true, false },          { "l", 1, false, true },          { "ul", 1, true, true },
	{ "lu", 1, true, true },          { "ll", 1, false, true },         { "ull", 1, true, true },
	{ "llu", 1, true, true },         { "k", 1024, false, false },      { "m", 1024 * 1024, false, false },
	{ "g", 1ul << 30, false, false }, { "t", 1ul << 40, false, false }, { "ns", 1, false, true },
	{ "us", 1000, false, true },      { "ms", 1000000, false, true },   { "s", 1000000000, false, true },
};

/* The least type of C's list that has the value: decimal ones are signed where they can be. */
static struct kymo_expr_type number_type(uint64_t value, bool is_decimal, bool is_unsigned, bool is_long)
{
	if (!is_long && !is_unsigned && value <= INT32_MAX)
		return (struct kymo_expr_type){ .size = 4, .is_signed = true };
	if (!is_long && (is_unsigned || !is_decimal) && value <= UINT32_MAX)
		return (struct kymo_expr_type){ .size = 4, .is_signed = false };
	return (struct kymo_expr_type){ .size = 8, .is_signed = !is_unsigned && value <= INT64_MAX };
}

/* Digits of `base`; false where they do not fit in 64 bits. */
static bool read_digits(const char **at, const char *end, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	for (; *at < end; ++*at) {
		const int digit = kymo_hex_digit(**at);

		if (digit < 0 || (unsigned int)digit >= base)
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

static bool is_suffix(const char *at, size_t size, const char *suffix)
{
	if (size != strlen(suffix))
		return false;
	for (size_t i = 0; i < size; i++)
		if ((at[i] | 0x20) != suffix[i])
			return false;
	return true;
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && expr_is_digit(*at))
		at++;
	return at;
}

/* After "e-3", or `at` where there is none. */
static const char *skip_exponent(const char *at, const char *end)
{
	const char *digits = at + 1;

	if (at == end || (*at | 0x20) != 'e')
		return at;
	if (digits < end && (*digits == '-' || *digits == '+'))
		digits++;
	return digits < end && expr_is_digit(*digits) ? skip_digits(digits, end) : at;
}

/* After the digits of "1.5", "1." or "1e3"; or NULL: it is a whole number. A ".." is that of a piece of an array. */
static const char *find_real_end(const char *at, const char *end)
{
	const char *behind = skip_digits(at, end), *exponent;

	if (behind < end && *behind == '.' && (behind + 1 == end || behind[1] != '.'))
		return skip_exponent(skip_digits(behind + 1, end), end);
	exponent = skip_exponent(behind, end);
	return exponent > behind ? exponent : NULL;
}

/* As ISO C 6.4.4.2; `behind` is the end of its digits. */
static struct kymo_error *read_real(const struct expr_tree *tree, const char *at, const char *behind,
				    const char **end_ret, struct expr_node *node)
{
	const char *end = tree->source.end;
	char digits[REAL_MAX + 1];
	bool is_float;
	size_t n = 0;

	while (behind + n < end && (expr_is_letter(behind[n]) || expr_is_digit(behind[n]) || behind[n] == '.'))
		n++;
	is_float = n == 1 && (*behind | 0x20) == 'f';
	if (n && !is_float)
		return kymo_error_at(tree->source.text, behind,
				     "no suffix '%.*s' of a floating-point number; there is f", (int)n, behind);
	if (behind - at > REAL_MAX)
		return kymo_error_at(tree->source.text, at, "the number has more than %d digits", REAL_MAX);
	memcpy(digits, at, (size_t)(behind - at));
	digits[behind - at] = '\0';
	*end_ret = behind + n;
	if (is_float) {
		const float value = strtof(digits, NULL);
		uint32_t bits;

		memcpy(&bits, &value, sizeof(bits));
		node->value = bits;
		node->type = (struct kymo_expr_type){ .size = 4, .of = &expr_float };
		return isfinite(value) ? NULL : kymo_error_at(tree->source.text, at, "a float does not have this");
	} else {
		const double value = strtod(digits, NULL);

		memcpy(&node->value, &value, sizeof(value));
		node->type = (struct kymo_expr_type){ .size = 8, .of = &expr_double };
		return isfinite(value) ? NULL : kymo_error_at(tree->source.text, at, "a double does not have this");
	}
}

static struct kymo_error *read_number(const struct expr_tree *tree, const char *at, const char **end_ret,
				      struct expr_node *node)
{
	const char *digits = at, *end = tree->source.end, *suffix;
	unsigned int base = 10;
	uint64_t value;
	size_t n = 0;

	suffix = find_real_end(at, end);
	if (suffix)
		return read_real(tree, at, suffix, end_ret, node);
	if (end - at > 2 && *at == '0' && (at[1] | 0x20) == 'x') {
		base = 16;
		digits += 2;
	} else if (*at == '0') {
		base = 8;
	}
	suffix = digits;
	if (!read_digits(&suffix, end, base, &value))
		return kymo_error_at(tree->source.text, at, "the number does not fit in 64 bits");
	while (suffix + n < end && (expr_is_letter(suffix[n]) || expr_is_digit(suffix[n])))
		n++;
	if (suffix == digits)
		return kymo_error_at(tree->source.text, at, "expected a number such as 42 or 0x2a");
	*end_ret = suffix + n;
	node->type = number_type(value, base == 10, false, false);
	node->value = (int64_t)value;
	if (!n)
		return NULL;
	for (size_t i = 0; i < kymo_countof(suffixes); i++) {
		if (!is_suffix(suffix, n, suffixes[i].text))
			continue;
		if (__builtin_mul_overflow(value, suffixes[i].factor, &value))
			return kymo_error_at(tree->source.text, at, "the number does not fit in 64 bits");
		node->type = number_type(value, base == 10, suffixes[i].is_unsigned, suffixes[i].is_long);
		node->value = (int64_t)value;
		return NULL;
	}
	return kymo_error_at(tree->source.text, suffix,
			     "no suffix '%.*s' of a number; there are u, l, ul, K, M, G, T, ns, us, ms and s", (int)n,
			     suffix);
}

static bool read_escape(const char **at, const char *end, int64_t *ret)
{
	static const char names[] = "abefnrtv\\'\"?", values[] = "\a\b\033\f\n\r\t\v\\'\"?";
	const char *found = *at < end && **at ? strchr(names, **at) : NULL;
	uint64_t value;

	if (found) {
		++*at;
		*ret = values[found - names];
		return true;
	}
	if (*at < end && **at == 'x') {
		const char *digits = ++*at;

		if (!read_digits(at, end, 16, &value) || *at == digits || value > 0xff)
			return false;
	} else {
		const char *digits = *at;

		if (!read_digits(at, end, 8, &value) || *at == digits || value > 0xff)
			return false;
	}
	*ret = (int8_t)value;
	return true;
}

static struct kymo_error *read_character(const struct expr_tree *tree, const char *at, const char **end_ret,
					 struct expr_node *node)
{
	const char *from = at + 1, *end = tree->source.end;
	bool is_good = from < end && *from != '\'';

	if (is_good && *from == '\\') {
		from++;
		is_good = read_escape(&from, end, &node->value);
	} else if (is_good) {
		node->value = (int8_t)*from++;
	}
	if (!is_good || from >= end || *from != '\'')
		return kymo_error_at(tree->source.text, at,
				     "expected one character between quotes, such as 'a' or '\\n'");
	node->type = (struct kymo_expr_type){ .size = 4, .is_signed = true };
	*end_ret = from + 1;
	return NULL;
}

struct kymo_error *expr_read_constant(const struct expr_tree *tree, const char *at, const char **end_ret,
				      struct expr_node *ret)
{
	ret->kind = EXPR_CONSTANT;
	ret->at = at;
	return *at == '\'' ? read_character(tree, at, end_ret, ret) : read_number(tree, at, end_ret, ret);
}

struct kymo_error *expr_read_text(const struct expr_tree *tree, const char *at, const char **end_ret,
				  char out[EXPR_TEXT_MAX + 1], size_t *size_ret)
{
	const char *from = at + 1, *end = tree->source.end;
	size_t n = 0;

	while (from < end && *from != '"') {
		const char *escape = from;
		int64_t c = *from++;

		if (c == '\\' && (!read_escape(&from, end, &c) || !c))
			return kymo_error_at(tree->source.text, escape,
					     "no such escape in a text; there are \\n, \\t, \\\\, \\\", \\x41 …");
		if (n == EXPR_TEXT_MAX)
			return kymo_error_at(tree->source.text, at,
					     "the text is too long: at most %d bytes are compared", EXPR_TEXT_MAX);
		out[n++] = (char)c;
	}
	if (from >= end)
		return kymo_error_at(tree->source.text, at, "expected '\"' at the end of the text");
	out[n] = '\0';
	*size_ret = n;
	*end_ret = from + 1;
	return NULL;
}
