/* Processes beside the first. Private to the room. */
#ifndef KYMO_RECORD_SEVERAL_H
#define KYMO_RECORD_SEVERAL_H

#include <sys/types.h>

#include "base/error.h"

struct recording;

/* Put probes into the other processes that are asked for, and into children that exist. A process that refuses is told
 * of; an error is about the recording. The first process runs on. */
struct kymo_error *recording_attach_others(struct recording *recording);

/* From outside, children that exist already are not recorded: the user is told, if there are any and they were not to
 * be left out. */
void recording_tell_left_out(struct recording *recording);

/* The user is told that this process is not in the recording; consumes the error. */
void recording_tell_refused(struct recording *recording, pid_t pid, struct kymo_error *error);

#endif
