/*
 * Text that grows. What does not fit into memory is dropped, and told once, at the end.
 */
#ifndef KYMO_SYSCALL_LINE_H
#define KYMO_SYSCALL_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct kymo_line {
	char *data; /* `n` bytes and a NUL; NULL while empty */
	size_t n, cap;
	bool is_cut; /* memory was out: something is missing */
};

void kymo_line_deinit(struct kymo_line *text);

/* Make it empty again, for the next line. */
void kymo_line_clear(struct kymo_line *text);

void kymo_line_add(struct kymo_line *text, const char *bytes, size_t n);
void kymo_line_puts(struct kymo_line *text, const char *string);
void kymo_line_printf(struct kymo_line *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The bytes as they stand within quotes, escaped as in C, with the shortest octal numbers. `also`: those that become
 * \x…, or NULL. */
void kymo_line_escape(struct kymo_line *text, const char *bytes, size_t n, const char *also);

/* Spaces up to `column` bytes in all. */
void kymo_line_pad(struct kymo_line *text, size_t column);

#endif
