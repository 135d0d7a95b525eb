#include "probe/spec/spec_piece.h"

#include <string.h>

#include "base/hex.h"

static bool is_digit_of(char c, int base)
{
	int digit = kymo_hex_digit(c);

	return digit >= 0 && digit < base;
}

bool kymo_spec_number(const char *start, const char *end, const char **end_ret, uint64_t *ret)
{
	const char *at = start;
	uint64_t value = 0;
	int base = 10;

	*end_ret = start;
	if (at < end && *at == '0') {
		base = 8;
		if (end - at > 2 && (at[1] == 'x' || at[1] == 'X') && is_digit_of(at[2], 16)) {
			base = 16;
			at += 2;
		}
	}
	for (; at < end && is_digit_of(*at, base); at++)
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)kymo_hex_digit(*at), &value))
			return false;
	*end_ret = at;
	*ret = value;
	return at > start;
}

bool kymo_spec_is_name(struct kymo_spec_piece piece, const char **bad_ret)
{
	for (const char *c = piece.start; c < piece.end; c++) {
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';

		if (!letter && !(kymo_spec_is_digit(*c) && c > piece.start)) {
			*bad_ret = c;
			return false;
		}
	}
	*bad_ret = piece.start;
	return piece.end > piece.start;
}

bool kymo_spec_is_arg(struct kymo_spec_piece piece)
{
	const char *equals = memchr(piece.start, '=', (size_t)(piece.end - piece.start)), *bad;
	const char *fetch = piece.start;

	if (equals && kymo_spec_is_name((struct kymo_spec_piece){ piece.start, equals }, &bad))
		fetch = equals + 1;
	return fetch < piece.end && strchr("%$\\@+-", *fetch);
}

const char *kymo_spec_skip_quoted(const char *at, const char *end)
{
	const char quote = *at;
	const char *last = quote == '"' ? end : end - at > 6 ? at + 6 : end; /* '\x41' is the longest character */

	if (quote != '"' && quote != '\'')
		return at;
	for (const char *c = at + 1; c < last; c++) {
		if (*c == quote && c > at + 1 - (quote == '"'))
			return c;
		c += *c == '\\';
	}
	return at;
}
