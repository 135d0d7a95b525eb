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
