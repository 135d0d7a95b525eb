#include "base/caret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* The text on one line, fit for a terminal: white space becomes blanks, other control bytes question marks. */
static char *printable(const char *text)
{
	char *copy = strdup(text);

	for (char *c = copy; c && *c; c++)
		if ((*c == ' ' || (*c >= '\t' && *c <= '\r')))
			*c = ' ';
		else if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return copy;
}

struct kymo_error *kymo_error_at(const char *text, const char *at, const char *format, ...)
{
	kymo_cleanup_free char *shown = printable(text), *sentence = NULL;
	const int before = (int)kymo_utf8_count(text, (size_t)(at - text));
	va_list args;

	va_start(args, format);
	sentence = kymo_format(format, args);
	va_end(args);
	if (!shown || !sentence)
		return &kymo_error_no_memory;
	return kymo_error_create(KYMO_ERROR_USAGE, "column %d: %s\n  %s\n  %*s^", before + 1, sentence, shown, before,
				 "");
}

static size_t common_start(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* Without the first `skip` bytes of both. */
static size_t common_end(const char *a, const char *b, size_t skip)
{
	const size_t a_size = strlen(a), b_size = strlen(b);
	size_t n = 0;

	while (n < a_size - skip && n < b_size - skip && a[a_size - n - 1] == b[b_size - n - 1])
		n++;
	return n;
}

/* The byte of `text` that is in the column. */
static size_t byte_at(const char *text, size_t column)
{
	const size_t size = strlen(text);
	size_t at = 0;

	while (at < size && kymo_utf8_count(text, at) + 1 < column)
		at++;
	return at;
}

/* The line before the last, which has the text; NULL: there is none. */
static const char *find_text(const char *message)
{
	const char *caret = strrchr(message, '\n'), *line = caret;

	while (line && line > message && line[-1] != '\n')
		line--;
	return line && line > message && !strncmp(line, "  ", 2) ? line : NULL;
}

struct kymo_error *kymo_error_retell(struct kymo_error *error, const char *text, const char *typed)
{
	kymo_cleanup_free char *shown = printable(text);
	const char *line = error && error->code == KYMO_ERROR_USAGE ? find_text(error->message) : NULL, *sentence;
	const size_t start = common_start(text, typed), end = strlen(text) - common_end(text, typed, start);
	struct kymo_error *retold;
	size_t column, at;
	int n = 0;

	if (!line || !shown || strncmp(line + 2, shown, strlen(shown)) != 0 || line[2 + strlen(shown)] != '\n' ||
	    sscanf(error->message, "column %zu: %n", &column, &n) != 1 || !n)
		return error;
	sentence = error->message + n;
	at = byte_at(text, column);
	if (at >= end)
		at += strlen(typed) - strlen(text);
	else if (at > start)
		at = start;
	retold = kymo_error_at(typed, typed + at, "%.*s", (int)(line - 1 - sentence), sentence);
	kymo_error_destroy(error);
	return retold;
}
