/* What the files of this room share: a recording while it goes on. */
#ifndef KYMO_RECORD_RECORDING_H
#define KYMO_RECORD_RECORDING_H

#include "probe/session.h"
#include "proc/proc.h"
#include "record/clock.h"
#include "record/output.h"
#include "record/record.h"
#include "ring/ring.h"

struct recording {
	const struct kymo_record_options *options;
	struct kymo_process *process;
	struct kymo_probes *probes;
	struct output output;
	bool has_output;
	struct kymo_ring *rings;
	struct kymo_shared_ring *shared;
	size_t n_rings;
	struct clock_sample begin;
	uint64_t begin_ns, next_progress_ns, next_flush_ns, next_seal_ns;
	bool has_begun;			/* a launched command has run its first instruction of its own */
	struct kymo_record_result result;
};

/* ---- describe.c: what the metadata says --------------------------------------------------------------------------- */

/* Command, pid, mode. */
struct kymo_error *recording_describe_target(struct recording *recording);

/* Names of the threads that live now. Those that come and go between two looks stay without a name. */
void recording_note_threads(struct recording *recording);

/* (Re)write the metadata, with the events that the probes have by now and the clock as it is known by now. */
struct kymo_error *recording_write_metadata(struct recording *recording);

/* ---- packets.c: from rings to streams ------------------------------------------------------------------------------ */

/* Once the probes have rings. */
struct kymo_error *recording_open_rings(struct recording *recording);

/* Write what is complete: one round over all rings. `n_ret` packets. */
struct kymo_error *recording_drain(struct recording *recording, size_t *n_ret);

/* Close what is half full, with producers at work. */
void recording_flush(struct recording *recording);

/* No producer is left: what lies in open packets, and losses behind the last one. */
struct kymo_error *recording_finish_rings(struct recording *recording);

uint64_t recording_lost(const struct recording *recording);

#endif
