/* What the process refuses goes through the kernel, and the rest does not. Private to the room. */
#ifndef KYMO_RECORD_MIXED_H
#define KYMO_RECORD_MIXED_H

#include <stdbool.h>

#include "base/error.h"

struct recording;
struct record_source;

/* Order `specs` by way. To be called before anything else, and whenever `reasons` has changed. */
struct kymo_error *recording_divide(struct recording *recording);

/* The kernel's half for `recording->run.pid`, where it has any specs. */
struct kymo_error *recording_open_mix(struct recording *recording);

/*
 * Put the kernel's half into what the process of `source` has mapped since the last time; before the other half, which
 * keeps away from it. The process is left running or stopped as it was. `new_ret`: whether there was something; may be
 * NULL.
 */
struct kymo_error *recording_mix(struct recording *recording, struct record_source *source, bool *new_ret);

/* The same for files that it has not mapped yet. */
struct kymo_error *recording_finish_mix(struct recording *recording);

/* Both halves begin, and end, at one moment: within one stop of the process. `data`: the recording. */
void recording_begin_together(void *data);
struct kymo_error *recording_end_together(struct recording *recording);

/* Tell the user what goes through the kernel: each of `reasons`, and why all of it does, if that is yet another one (or
 * NULL). */
void recording_tell_reasons(struct recording *recording, const struct kymo_error *refusal);

#endif
