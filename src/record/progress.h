/* How far a recording is. Private to the room. */
#ifndef KYMO_RECORD_PROGRESS_H
#define KYMO_RECORD_PROGRESS_H

#include <stdbool.h>

#include "record/record.h"

struct recording;

/* Tell the user how far the recording is, if asked for: "planning", "recording", "stopping" or "done". */
void recording_progress(struct recording *recording, enum kymo_record_phase phase);

/* The caller wants it to end. */
bool recording_is_stopped(const struct recording *recording);

/* The caller wants it to end, or the time that it was given is over. */
bool recording_is_time_up(const struct recording *recording);

#endif
