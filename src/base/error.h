/*
 * Errors that carry a sentence.
 *
 * Rooms above wire, arch and ring return `struct kymo_error *`: NULL is success, anything else is owned by the caller
 * and says what failed, where, and what to do. Low rooms return a negative errno instead; kymo_error_errno() is the
 * border between the two.
 */
#ifndef KYMO_BASE_ERROR_H
#define KYMO_BASE_ERROR_H

#include <stdarg.h>

enum kymo_error_code {
	KYMO_ERROR_FAILED = 1, /* anything without a code of its own */
	KYMO_ERROR_NO_MEMORY,
	KYMO_ERROR_USAGE,     /* the user's words are wrong; exit status 2 */
	KYMO_ERROR_NOT_FOUND, /* no such program, file, symbol, process */
	KYMO_ERROR_PERMISSION,
	KYMO_ERROR_BUSY,     /* in use by a third party: another tracer, another recorder */
	KYMO_ERROR_GONE,     /* the process ended meanwhile */
	KYMO_ERROR_UNSAFE,   /* the planner has no proof, or a thread stands where it must not */
	KYMO_ERROR_BAD_DATA, /* a file, a trace or a shared mapping is damaged or lies */
};

struct kymo_error {
	enum kymo_error_code code;
	int err;       /* the errno value that it was made of, positive; or 0 */
	char *message; /* one sentence, no trailing full stop; of several refusals, each in a line */
};

/* Returned where allocation of the error itself failed; destroying it is a no-op. */
extern struct kymo_error kymo_error_no_memory;

/* A fresh string, or NULL: vasprintf() leaves the pointer undefined where memory is out. */
char *kymo_format(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Make an error. Never returns NULL. Thread safe. */
struct kymo_error *kymo_error_create(enum kymo_error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* Make an error from an errno value: "FORMAT...: strerror(err)". EPERM and EACCES become PERMISSION, ENOENT NOT_FOUND,
 * ESRCH GONE, ENOMEM NO_MEMORY, EBUSY BUSY, all else FAILED. `err` may be given positive or negative. */
struct kymo_error *kymo_error_errno(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* Put "FORMAT...: " before the sentence of `error` (which is consumed); keeps the code. Returns NULL for NULL. */
struct kymo_error *kymo_error_prefix(struct kymo_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Free an error; NULL is allowed. */
void kymo_error_destroy(struct kymo_error *error);

/* The error of two steps, the second of which was made whether the first had failed or not: that of the first, and the
 * second's is freed. Both are consumed; either may be NULL. */
struct kymo_error *kymo_error_first(struct kymo_error *first, struct kymo_error *second);

#endif
