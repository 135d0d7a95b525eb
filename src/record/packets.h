/* From rings to streams. Private to the room. */
#ifndef KYMO_RECORD_PACKETS_H
#define KYMO_RECORD_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct recording;
struct record_source;

/* Once the probes have rings. */
struct kymo_error *source_open_rings(struct recording *recording, struct record_source *source);

/* Warn that calls of a library may be missing: its process has not waited for the probes. */
void recording_tell_late(struct recording *recording, const struct record_source *source);

/* Whether its program has forbidden itself to read the time stamp counter: nothing is recorded of it from then on. */
bool source_is_muted(const struct record_source *source);

/* No producer is left: what lies in open packets, and losses after the last one. Its streams are free for others then.
 */
struct kymo_error *source_finish_rings(struct recording *recording, struct record_source *source);

/* Write what is complete: one round over all rings. `n_ret` packets. */
struct kymo_error *recording_drain(struct recording *recording, size_t *n_ret);

/* Write how many hits vfork children have had so far. */
struct kymo_error *recording_note_vforks(struct recording *recording);

/* Close what is half full, with producers at work. */
void recording_flush(struct recording *recording);

/*
 * What producers have written so far, for a reader that does not come back: half full packets are closed, and every
 * ring that is in use gets all of its memory, as a ring without is not drained. recording_drain() has it all then.
 * false: a producer did not leave its packet in time (20 ms for all), or a ring in use could not get its memory.
 */
bool recording_make_complete(struct recording *recording);

/* All that were lost so far, those of vfork children too. */
uint64_t recording_lost(const struct recording *recording);

/* Places with probes: the most that a process has had, and the kernel's. */
size_t recording_n_sites(const struct recording *recording);

#endif
