#include "probe/spec_piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"

/* The text on one line, fit for a terminal: white space becomes blanks, other control bytes question marks. */
static char *printable(const char *text)
{
	char *copy = strdup(text);

	for (char *c = copy; c && *c; c++)
		if (kymo_spec_is_space(*c))
			*c = ' ';
		else if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return copy;
}

/* Characters of UTF-8 between `from` and `to`: bytes that do not continue one. */
static int count_characters(const char *from, const char *to)
{
	int n = 0;

	for (; from < to; from++)
		n += ((unsigned char)*from & 0xc0) != 0x80;
	return n;
}

struct kymo_error *kymo_spec_wrong(const char *text, const char *at, const char *format, ...)
{
	kymo_cleanup_free char *shown = printable(text), *sentence = NULL;
	int before = count_characters(text, at);
	va_list args;

	va_start(args, format);
	sentence = kymo_format(format, args);
	va_end(args);
	if (!shown || !sentence)
		return &kymo_error_no_memory;
	return kymo_error_create(KYMO_ERROR_USAGE, "column %d: %s\n  %s\n  %*s^", before + 1, sentence, shown, before,
				 "");
}

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
