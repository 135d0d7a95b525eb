/*
 * System calls as engines of a hub see them, which traces the threads (kymo/engine.h): a way of calls.h, with one
 * stream. Private to the room.
 *
 * Threads stand while their calls are recorded, so nothing is lost: a disk that is slow makes them wait, one that is
 * full ends the recording, and they run on.
 */
#ifndef KYMO_RECORD_HUB_CALLS_H
#define KYMO_RECORD_HUB_CALLS_H

#include "record/calls.h"

/*
 * `command` (NULL-terminated), launched, which stands until recording_calls_begin(); or NULL: process `options->pid`,
 * through the hub that traces it already, if there is one. `pid_ret` is whose calls are recorded. BUSY, PERMISSION,
 * GONE, NOT_FOUND.
 */
struct kymo_error *hub_calls_open(const struct recording_calls_options *options, char *const *command, pid_t *pid_ret,
				  struct recording_calls **ret);

#endif
