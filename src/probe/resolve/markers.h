/* Markers that specs mean, and what their events hold. Private to the room. */
#ifndef KYMO_PROBE_RESOLVE_MARKERS_H
#define KYMO_PROBE_RESOLVE_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_marker;
struct kymo_probe_event;
struct kymo_probes;
struct probe_meaning;
struct probe_text;

/* Resolve the markers of a module that a spec means. Notes that are damaged are a warning, and no markers. */
struct kymo_error *probes_resolve_marker(struct kymo_probes *probes, const struct probe_meaning *meaning);

/* What an event of `marker` holds; strings stay the marker's and the spec's. `source` has room for the event's. USAGE
 * for expressions that its arguments make impossible. */
struct kymo_error *probe_marker_arguments(const struct kymo_marker *marker, struct kymo_probe_event *event,
					  char *source, size_t size);

/* Free the forms that it made. */
void probe_marker_arguments_deinit(struct kymo_probe_event *event);

/*
 * Sites and locations of kymo's own markers, also if no spec asks for any. A site's text belongs to all parties that
 * turn the marker on, the program itself too: nothing else is changed there. Another recording may put its probe at
 * such a location. So no jump relies on its bytes, and only a probe on it touches it. False when memory is out.
 */
bool probes_mark_markers(const struct kymo_probes *probes, struct probe_text *text);

/* "kymo:request": the marker that is turned on at `address`, or NULL. To be freed. */
char *probes_marker_at(const struct kymo_probes *probes, size_t module, uint64_t address);

/* NOT_FOUND: no module of the process has a marker that `glob` means; with some that there are. */
struct kymo_error *probes_no_such_marker(struct kymo_probes *probes, const char *glob);

#endif
