/* Lines of source by what is in them: "FILE:SOURCE:/PATTERN/", an extended regular expression. */
#ifndef KYMO_CLI_SOURCE_PATTERN_H
#define KYMO_CLI_SOURCE_PATTERN_H

#include <stddef.h>

#include "base/error.h"

struct kymo_debug;

/* The bytes of "FILE:SOURCE:/PATTERN/" at `text`, of which `at_ret` are before the first slash; a pattern may have
 * blanks, and ends with a slash that has a blank or the end after it. 0: none is there. */
size_t cli_source_pattern_size(const char *text, size_t *at_ret);

/* The number of the one line of `source` that has code and matches. Where several have code, or one without any
 * matches as the only one, that is said. USAGE, NOT_FOUND. */
struct kymo_error *cli_source_pattern_find(struct kymo_debug *debug, const char *source, const char *pattern,
					   unsigned int *ret);

#endif
