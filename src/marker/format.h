/* Fields and their names from a printf format. Pure, and without anything of a module. */
#ifndef KYMO_MARKER_FORMAT_H
#define KYMO_MARKER_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "marker/fields.h"

/* The fields of a marker of kymo's, from what its note says of types (include/kymo/marker.h) and format. -EINVAL: the
 * types are no types. */
int kymo_marker_fields(uint32_t types, const char *format, struct kymo_marker_fields *ret);

/* What a format says about one argument. */
struct marker_conversion {
	const char *name; /* "fd" of "fd=%d", in the format; NULL where there is none */
	size_t name_length;
	bool has_precision;
	char letter; /* 'd', 's' …; '*' for a width or precision */
};

/* The first `max` arguments that a printf format takes; their number. 0 for formats that number them ("%2$d"). */
size_t kymo_marker_parse_format(const char *format, struct marker_conversion *ret, size_t max);

/* Make names for all fields: those of `conversions` (`n` of them, at most as many as fields) where they have one, else
 * arg1 …; no two are equal. */
void kymo_marker_make_names(const struct marker_conversion *conversions, size_t n, struct kymo_marker_fields *fields);

#endif
