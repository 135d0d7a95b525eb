#include "gdb/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
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
	char *to;

	if (text->has_failed || !kymo_vec_reserve(text, text->n + 2 * n)) {
		text->has_failed = true;
		return;
	}
	if (!n)
		return;
	to = text->items + text->n; /* not by the text each time: a character may alias all of it */
	for (size_t i = 0; i < n; i++) {
		*to++ = digits[at[i] >> 4];
		*to++ = digits[at[i] & 15];
	}
	text->n += 2 * n;
}

/* Whether a document of XML 1.0 may have the character; DEL may be in one, and is shown all the same. */
static bool may_be_in_xml(int32_t point)
{
	return point >= 0x20 && point != 0x7f && point != 0xfffe && point != 0xffff;
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
		const int32_t point = kymo_utf8_decode(string, SIZE_MAX, &n);
		const char *name = entity(*string);

		if (name)
			gdb_text_put(text, name);
		else if (may_be_in_xml(point))
			gdb_text_bytes(text, string, n);
		else
			gdb_text_put(text, "?");
	}
}
