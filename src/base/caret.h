/* Errors about a place in a line of the user's. */
#ifndef KYMO_BASE_CARET_H
#define KYMO_BASE_CARET_H

#include "base/error.h"

/*
 * A USAGE error about the byte at `at` of `text`: the column, the sentence, the text, and a caret below it. Columns are
 * characters of UTF-8; control bytes are shown as question marks. Consumes nothing. Never returns NULL.
 *
 *	column 18: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …
 *	  libc:malloc size=%dj
 *	                   ^
 */
struct kymo_error *kymo_error_at(const char *text, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4), returns_nonnull));

/*
 * The same of `typed`, which the user has written and `text` was made of by replacing a part: an error about a place
 * after that part is about the same place of `typed`, one about the part about its beginning. Errors that are about
 * another text come back as they are. Consumes `error`; NULL for NULL.
 */
struct kymo_error *kymo_error_retell(struct kymo_error *error, const char *text, const char *typed);

#endif
