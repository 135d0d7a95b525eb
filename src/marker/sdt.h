/* One note of SystemTap's. Private to the room. */
#ifndef KYMO_MARKER_SDT_H
#define KYMO_MARKER_SDT_H

#include <stdint.h>

#include "base/error.h"

struct kymo_note;
struct marker_reader;

/* A note of SystemTap's. `base` is where .stapsdt.base is, or 0. All of kymo's must have been read, and
 * `reader->switches` be sorted by marker_by_site(). */
struct kymo_error *marker_read_sdt(struct marker_reader *reader, uint64_t base, const struct kymo_note *note);

#endif
