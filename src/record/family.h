/* Which processes are recorded. Private to the room. */
#ifndef KYMO_RECORD_FAMILY_H
#define KYMO_RECORD_FAMILY_H

#include <stdbool.h>

#include "base/error.h"
#include "proc/linker.h"

struct recording;
struct target;

/* Whether its process has ended, or has no memory any more, as `error` of a request to it may say. */
bool recording_is_dead(const struct target *target, const struct kymo_error *error);

/* Give a process that runs its probes and rings. It is stopped afterwards. */
struct kymo_error *recording_probe_running(struct recording *recording, struct target *target);

/* A start-up event of a target, which is stopped. `done_ret`: it may run on its own. */
struct kymo_error *recording_start_up(struct recording *recording, struct target *target, enum kymo_startup_event event,
				      bool *done_ret);

/* Deal with what the tree has to tell, for some milliseconds at most. An error is about the recording, not about one
 * process. */
struct kymo_error *recording_follow(struct recording *recording);

/* Drain rings while the tree waits for a peer that has joined. An error is recording_follow()'s. `data` is the
 * recording. */
void recording_drain_meanwhile(void *data);

/* A warning for each spec that no process has met. */
void recording_tell_unmet(struct recording *recording);

#endif
