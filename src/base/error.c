#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kymo_error kymo_error_no_memory = { KYMO_ERROR_NO_MEMORY, ENOMEM, (char *)"out of memory" };

static struct kymo_error *create_take(enum kymo_error_code code, int err, char *message)
{
	struct kymo_error *error = message ? malloc(sizeof(*error)) : NULL;

	if (!error) {
		free(message);
		return &kymo_error_no_memory;
	}
	error->code = code;
	error->err = err;
	error->message = message;
	return error;
}

char *kymo_format(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? NULL : text;
}

struct kymo_error *kymo_error_create(enum kymo_error_code code, const char *format, ...)
{
	va_list args;
	char *message;

	va_start(args, format);
	message = kymo_format(format, args);
	va_end(args);
	return create_take(code, 0, message);
}

static enum kymo_error_code code_of_errno(int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
		return KYMO_ERROR_PERMISSION;
	case ENOENT:
		return KYMO_ERROR_NOT_FOUND;
	case ESRCH:
		return KYMO_ERROR_GONE;
	case ENOMEM:
		return KYMO_ERROR_NO_MEMORY;
	case EBUSY:
		return KYMO_ERROR_BUSY;
	default:
		return KYMO_ERROR_FAILED;
	}
}

struct kymo_error *kymo_error_errno(int err, const char *format, ...)
{
	char *what, *message;
	va_list args;
	int n;

	err = err < 0 ? -err : err;
	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	if (!what)
		return &kymo_error_no_memory;
	n = asprintf(&message, "%s: %s", what, strerror(err));
	free(what);
	return create_take(code_of_errno(err), err, n < 0 ? NULL : message);
}

struct kymo_error *kymo_error_prefix(struct kymo_error *error, const char *format, ...)
{
	char *what, *message;
	va_list args;
	int n;

	if (!error || error == &kymo_error_no_memory)
		return error;
	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	if (!what)
		return error;
	n = asprintf(&message, "%s: %s", what, error->message);
	free(what);
	if (n >= 0) {
		free(error->message);
		error->message = message;
	}
	return error;
}

void kymo_error_destroy(struct kymo_error *error)
{
	if (!error || error == &kymo_error_no_memory)
		return;
	free(error->message);
	free(error);
}

struct kymo_error *kymo_error_first(struct kymo_error *first, struct kymo_error *second)
{
	if (!first)
		return second;
	kymo_error_destroy(second);
	return first;
}
