#include "gdb/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void gdb_text_deinit(struct gdb_text *text)
{
	kymo_vec_deinit(text);
	text->has_failed = false;
}

void gdb_text_clear(struct gdb_text *text)
{
	text->n = 0;
	text->has_failed = false;
}

void gdb_text_bytes(struct gdb_text *text, const void *bytes, size_t n)
{
	if (!n)
		return;
	if (text->has_failed || !kymo_vec_reserve(text, text->n + n)) {
		text->has_failed = true;
		return;
	}
	memcpy(text->items + text->n, bytes, n);
	text->n += n;
}

void gdb_text_put(struct gdb_text *text, const char *string)
{
	gdb_text_bytes(text, string, strlen(string));
}

void gdb_text_format(struct gdb_text *text, const char *format, ...)
{
	char *string = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&string, format, args);
	va_end(args);
	if (n < 0) {
		text->has_failed = true;
		return;
	}
	gdb_text_bytes(text, string, (size_t)n);
	free(string);
}

void gdb_text_hex(struct gdb_text *text, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *at = bytes;

	if (text->has_failed || !kymo_vec_reserve(text, text->n + 2 * n)) {
		text->has_failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		text->items[text->n++] = digits[at[i] >> 4];
		text->items[text->n++] = digits[at[i] & 15];
	}
}

/* How many bytes a character has that is not ASCII; 0: it is none. Each is the shortest form, and no surrogate. */
static size_t utf8(const unsigned char *at)
{
	const size_t n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	unsigned int value = at[0] & (0xffu >> (n + 1));

	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	if ((n == 3 && value < 0x800) || (n == 4 && value < 0x10000) || value > 0x10ffff ||
	    (value >= 0xd800 && value < 0xe000) || value == 0xfffe || value == 0xffff)
		return 0;
	return n;
}

static const char *entity(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&apos;";
	default:
		return NULL;
	}
}

void gdb_text_xml(struct gdb_text *text, const char *string)
{
	size_t n;

	for (; *string; string += n) {
		const unsigned char c = (unsigned char)*string;
		const char *name = entity(*string);

		n = c < 0x80 ? 1 : utf8((const unsigned char *)string);
		if (name)
			gdb_text_put(text, name);
		else if (!n || c < 0x20 || c == 0x7f)
			gdb_text_put(text, "?");
		else
			gdb_text_bytes(text, string, n);
		n = n ? n : 1;
	}
}
