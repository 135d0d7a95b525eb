/* How far a recording is, and whether it is to end. */
#include "record/progress.h"

#include "base/io.h"
#include "record/aggregate.h"
#include "record/packets.h"
#include "record/recording.h"

#define SECOND_NS 1000000000u

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
