/*
 * Which markers are meant, what their events are called and what their records hold, the same whether kymo records it
 * from outside or the program records itself (lib/marker). Pure, and without anything of a module.
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

/* The fields of a marker of kymo's, from what its note says of types (include/kymo/marker.h) and format. -EINVAL: the
 * types are no types. */
int kymo_marker_fields(uint32_t types, const char *format, struct kymo_marker_fields *ret);

/* "postgresql:query__start"; what the author of a marker of kymo's has given no provider of its own is told by its
 * file, "server:request". To be freed; NULL when memory is out. */
char *kymo_marker_event_name(const char *module_path, bool is_sdt, const char *provider, const char *name);

/* Whether `glob` means a marker of that provider and name in the module at `module_path` (as kymo_name_matches_file()
 * takes it; `soname` may be NULL): "GLOB" is matched with the name, "GLOB:GLOB" with the provider, or the module, and
 * the name. */
bool kymo_marker_matches(const char *glob, const char *module_path, const char *soname, const char *provider,
			 const char *name);

#endif
