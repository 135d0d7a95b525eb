/* How far a recording is, and whether it is to end. */
#include "record/progress.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/states.h"
#include "record/aggregate.h"
#include "record/packets.h"
#include "record/recording.h"

#define SECOND_NS 1000000000u

/* What may follow what, of one attempt. Nothing is taken out where all processes have ended: no STOPPING. */
static const struct kymo_state_row phases[] = {
	[KYMO_RECORD_PLANNING] = { "planning", KYMO_STATE(KYMO_RECORD_PLANNING) | KYMO_STATE(KYMO_RECORD_RUNNING) },
	[KYMO_RECORD_RUNNING] = { "recording", KYMO_STATE(KYMO_RECORD_RUNNING) | KYMO_STATE(KYMO_RECORD_STOPPING) |
						       KYMO_STATE(KYMO_RECORD_DONE) },
	[KYMO_RECORD_STOPPING] = { "stopping", KYMO_STATE(KYMO_RECORD_DONE) },
	[KYMO_RECORD_DONE] = { "done", 0 },
};

void recording_progress(struct recording *recording, enum kymo_record_phase phase)
{
	struct kymo_record_progress now = {
		.seconds = recording->run.begin_ns ? (double)(kymo_now_ns() - recording->run.begin_ns) / SECOND_NS : 0,
		.bytes = __atomic_load_n(&recording->output.files.bytes, __ATOMIC_RELAXED) +
			 recording->output.files.dropped_bytes,
		.aggregated = aggregate_hits(recording),
		.events = __atomic_load_n(&recording->output.files.events, __ATOMIC_RELAXED) +
			  recording->output.files.dropped_events,
		.lost = recording_lost(recording),
		.n_sites = recording_n_sites(recording),
		.n_processes = recording->run.targets.n,
		.phase = phase,
		.command_ended = recording->result.command_ended,
	};

	kymo_state_check("recording", phases, kymo_countof(phases), recording->run.phase, phase);
	recording->run.phase = phase;
	if (recording->wanted.options->progress)
		recording->wanted.options->progress(&now, recording->wanted.options->data);
}

bool recording_is_stopped(const struct recording *recording)
{
	return recording->wanted.options->control->stop;
}

bool recording_is_time_up(const struct recording *recording)
{
	return recording_is_stopped(recording) || recording->run.until.is_over ||
	       (recording->wanted.options->seconds > 0 &&
		(double)(kymo_now_ns() - recording->run.begin_ns) >= recording->wanted.options->seconds * SECOND_NS);
}
