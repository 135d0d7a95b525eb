#include "syscall/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void kymo_line_deinit(struct kymo_line *text)
{
	free(text->data);
	*text = (struct kymo_line){ 0 };
}

void kymo_line_clear(struct kymo_line *text)
{
	text->n = 0;
	text->is_cut = false;
	if (text->data)
		text->data[0] = '\0';
}

static bool reserve_bytes(struct kymo_line *text, size_t n)
{
	if (kymo_vec_reserve_((void **)&text->data, &text->cap, text->n + n + 1, 1))
		return true;
	text->is_cut = true;
	return false;
}

void kymo_line_add(struct kymo_line *text, const char *bytes, size_t n)
{
	if (!reserve_bytes(text, n))
		return;
	if (n)
		memcpy(text->data + text->n, bytes, n);
	text->n += n;
	text->data[text->n] = '\0';
}

void kymo_line_puts(struct kymo_line *text, const char *string)
{
	kymo_line_add(text, string, strlen(string));
}

void kymo_line_printf(struct kymo_line *text, const char *format, ...)
{
	char buffer[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buffer, sizeof(buffer), format, args);
	va_end(args);
	if (n < 0 || (size_t)n < sizeof(buffer)) {
		kymo_line_add(text, buffer, n < 0 ? 0 : (size_t)n);
		return;
	}
	if (!reserve_bytes(text, (size_t)n))
		return;
	va_start(args, format);
	vsnprintf(text->data + text->n, (size_t)n + 1, format, args);
	va_end(args);
	text->n += (size_t)n;
}

static const char *short_escape(char c)
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\f':
		return "\\f";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	case '\v':
		return "\\v";
	default:
		return NULL;
	}
}

void kymo_line_escape(struct kymo_line *text, const char *bytes, size_t n, const char *also)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)bytes[i];
		const bool digit_follows = i + 1 < n && bytes[i + 1] >= '0' && bytes[i + 1] <= '7';
		const char *escape = short_escape((char)c);

		if (escape)
			kymo_line_puts(text, escape);
		else if (c >= ' ' && c < 0x7f && !(also && strchr(also, c)))
			kymo_line_add(text, &bytes[i], 1);
		else
			kymo_line_printf(text, digit_follows ? "\\%03o" : "\\%o", c);
	}
}

void kymo_line_pad(struct kymo_line *text, size_t column)
{
	if (text->n < column && reserve_bytes(text, column - text->n)) {
		memset(text->data + text->n, ' ', column - text->n);
		text->n = column;
		text->data[column] = '\0';
	}
}
