/* One note of kymo's own. Private to the room. */
#ifndef KYMO_MARKER_NOTES_H
#define KYMO_MARKER_NOTES_H

#include "base/error.h"

struct kymo_note;
struct marker_reader;

/* A note of the owner "kymo": a switch, a marker, or something of a later version, which is passed over. */
struct kymo_error *marker_read_kymo(struct marker_reader *reader, const struct kymo_note *note);

#endif
