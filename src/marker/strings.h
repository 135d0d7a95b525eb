/* Text that lives as long as the list of markers. Private to the room. */
#ifndef KYMO_MARKER_STRINGS_H
#define KYMO_MARKER_STRINGS_H

#include <stddef.h>

#include "base/error.h"
#include "base/vec.h"

struct kymo_marker;
struct kymo_marker_fields;
struct marker_reader;

struct marker_strings {
	KYMO_VEC(char *) blocks;
	size_t used;  /* of the last block */
	size_t total; /* bytes of all texts */
};

/* A copy of the `length` bytes at `text` with a NUL. Notes may share their bytes, copies do not: BAD_DATA where there
 * are too many. */
struct kymo_error *marker_copy(struct marker_reader *reader, const char *text, size_t length, char **ret);
struct kymo_error *marker_print(struct marker_reader *reader, char **ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Copies of the fields' names for all fields of the marker. */
struct kymo_error *marker_copy_names(struct marker_reader *reader, const struct kymo_marker_fields *fields,
				     struct kymo_marker *marker);

void marker_strings_destroy(struct marker_strings *strings);

#endif
