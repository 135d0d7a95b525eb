/* Text that grows: replies, documents. Where memory is out it becomes failed, and stays so. */
#ifndef KYMO_GDB_TEXT_H
#define KYMO_GDB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdb_text {
	char *items;
	size_t n, cap;
	bool has_failed;
};

void gdb_text_deinit(struct gdb_text *text);
void gdb_text_clear(struct gdb_text *text);
void gdb_text_bytes(struct gdb_text *text, const void *bytes, size_t n);
void gdb_text_put(struct gdb_text *text, const char *string);
void gdb_text_format(struct gdb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Each byte as two digits. */
void gdb_text_hex(struct gdb_text *text, const void *bytes, size_t n);

/* A string as an XML attribute or text may have it, in UTF-8; bytes that are not that, and control characters, become
 * '?'. */
void gdb_text_xml(struct gdb_text *text, const char *string);

#endif
