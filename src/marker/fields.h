/*
 * What records of a marker hold, the same whether kymo records it from outside or the program records itself
 * (lib/marker).
 */
#ifndef KYMO_MARKER_FIELDS_H
#define KYMO_MARKER_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/event.h"
#include "wire/types.h"

#define KYMO_MARKER_FIELD_NAME_MAX 63 /* of what a format gives, as of the arguments of probes */

struct kymo_marker_fields {
	size_t n;
	const char *why_not; /* a sentence why the marker must not be turned on, or NULL */
	enum kymo_type types[KYMO_EVENT_MAX_ARGS];
	/* "arg8" grows by one "_" for each field that is called so already. */
	char names[KYMO_EVENT_MAX_ARGS][KYMO_MARKER_FIELD_NAME_MAX + 1 + KYMO_EVENT_MAX_ARGS];
};

#endif
