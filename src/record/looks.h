/* Whether probes are in still. Private to the room. */
#ifndef KYMO_RECORD_LOOKS_H
#define KYMO_RECORD_LOOKS_H

#include "base/error.h"

struct recording;
struct target;

/* Look at the text of those processes whose turn it is. An error is about the recording. */
struct kymo_error *recording_look(struct recording *recording);

/* The target is about to be taken out of, or to be freed: its gaps are told, and are in the trace. */
void recording_end_look(struct recording *recording, struct target *target);

#endif
