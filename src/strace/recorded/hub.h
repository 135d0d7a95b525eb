/*
 * System calls as engines of a hub see them, which traces the threads (kymo/engine.h): a way of source.h, with one
 * stream.
 *
 * Threads stand while their calls are recorded, so nothing is lost: a disk that is slow makes them wait, one that is
 * full ends the recording, and they run on.
 */
#ifndef KYMO_STRACE_RECORDED_HUB_H
#define KYMO_STRACE_RECORDED_HUB_H

#include "strace/recorded/source.h"

/*
 * `command` (NULL-terminated), launched, which stands until kymo_call_source_begin(); or NULL: process `options->pid`,
 * through the hub that traces it already, if there is one. `pid_ret` is whose calls are recorded. BUSY, PERMISSION,
 * GONE, NOT_FOUND.
 */
struct kymo_error *kymo_call_source_open_hub(const struct kymo_call_source_options *options, char *const *command,
					     pid_t *pid_ret, struct kymo_call_source **ret);

#endif
