/* Processes and their sources. Private to the room. */
#ifndef KYMO_RECORD_TARGETS_H
#define KYMO_RECORD_TARGETS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_adopted;
struct kymo_process;
struct recording;
struct record_source;
struct target;

/* Add a process, which is the target's from here on; NULL when memory is out. */
struct target *recording_add_target(struct recording *recording, struct kymo_process *process,
				    const struct target *parent);

/* It has ended, or is let go: with the last one of a source that is drained and freed. Frees the target. */
struct kymo_error *recording_drop_target(struct recording *recording, struct target *target);

/* Probes for a target that has none, not yet in. */
struct kymo_error *recording_create_source(struct recording *recording, struct target *target);

/* Nothing of it is recorded: what has come of its probes is taken out, and it leaves the recording. Frees the target.
 */
void recording_give_back(struct recording *recording, struct target *target);

/* The target records by this source, which may be NULL. */
void recording_use_source(struct target *target, struct record_source *source);

/* How many bytes a CPU the next process has that was not asked for: all of those have no more than one that was; but
 * for the least of each. */
uint64_t recording_share_of(const struct recording *recording);

/* The rings of a forked child, with the probes of `parent`. NULL when memory is out. */
struct record_source *recording_share_source(struct recording *recording, struct record_source *parent,
					     struct kymo_adopted *adopted, pid_t pid);

/* Whether a directory can be made where the recording is to be. It is looked at once, and not where it is made. */
struct kymo_error *recording_check_directory(struct recording *recording);

/* The directory and its first metadata, if they are not there yet. */
struct kymo_error *recording_make_output(struct recording *recording);

/* Put in what is mapped and not in yet. */
struct kymo_error *recording_install(struct recording *recording, struct record_source *source);

#endif
