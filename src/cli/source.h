/* Locations in a program with debug information: "FILE:FUNCTION", "FILE:FUNCTION+OFFSET", "FILE:app.c:120",
 * "FILE:app.c:/count = 0/", "FILE:FUNCTION:LABEL". */
#ifndef KYMO_CLI_SOURCE_H
#define KYMO_CLI_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct kymo_debug;
struct kymo_module;

/* What "FILE:SOURCE:LINE" says, "FILE:SOURCE:/PATTERN/", and "FILE:FUNCTION:LINES", which is so many lines after where
 * the function begins; and "FILE:FUNCTION:LABEL". */
struct cli_source_line {
	char *file, *source;
	unsigned int line;
	char *pattern; /* in place of the line; or NULL */
	char *label;   /* likewise */
};

struct cli_source {
	struct kymo_module *module; /* of cli_module() */
	struct kymo_debug *debug;
	KYMO_VEC(uint64_t) places; /* the same location may be several: of inlined instances */
	char *note;                /* or NULL: what is taken in its place */
	char *shown;               /* of lines and labels: "app.c:120", "work:out"; else NULL */
};

/* Whether the `length` bytes at `text` have that form, and no file is called like what is before the line's colon. */
bool cli_source_line_parse(const char *text, size_t length, struct cli_source_line *ret);
void cli_source_line_deinit(struct cli_source_line *line);

/* Where the function of a file that has no code of its own is inlined; no places where it has some, where nothing is
 * known of it, or where the file is not there. */
struct kymo_error *cli_source_find_inlined(const char *file, const char *function, struct cli_source *ret);

/* Find the addresses of a location. USAGE, NOT_FOUND. */
struct kymo_error *cli_source_find(const char *text, struct cli_source *ret);
void cli_source_deinit(struct cli_source *source);

#endif
