/* The end of a recording by a condition, or the snapshots. */
#include "record/until.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "record/aggregate.h"
#include "record/recording.h"
#include "record/snapshot.h"

#define SECOND_NS 1000000000u

/* The time of day at a stamp that is not long ago. */
static void format_time(const struct recording *recording, uint64_t tsc, char ret[16])
{
	const uint64_t now = kymo_clock_tsc(),
		       ago = kymo_ctf_duration_ns(&recording->output.files.trace, now > tsc ? now - tsc : 0);
	struct timespec time;
	struct tm parts;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &time);
	ns = (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec - ago;
	time.tv_sec = (time_t)(ns / SECOND_NS);
	localtime_r(&time.tv_sec, &parts);
	snprintf(ret, 16, "%02d:%02d:%02d.%03u", parts.tm_hour, parts.tm_min, parts.tm_sec % 100,
		 (unsigned int)(ns % SECOND_NS / 1000000));
}

static void tell_held(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const struct aggregating *aggregating = recording->output.aggregating;
	kymo_cleanup_free char *sentence = NULL;
	char time[16];

	format_time(recording, aggregating->condition.tsc, time);
	if (options->tell && asprintf(&sentence, "'%s' held at %s in thread %d", aggregating->condition.aggr->probe,
				      time, aggregating->condition.tid) >= 0)
		options->tell(sentence, options->data);
}

void recording_heed_conditions(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct aggregating *aggregating = recording->output.aggregating;
	const uint64_t now = kymo_now_ns();

	if (!aggregating || !aggregating->condition.aggr || recording->run.until.is_over)
		return;
	if (!recording->run.until.end_ns) {
		tell_held(recording);
		recording->run.until.n_held++;
		recording->run.until.end_ns = now + (uint64_t)(options->after * SECOND_NS);
	}
	if (now < recording->run.until.end_ns)
		return;
	recording->run.until.is_over = recording->run.until.n_held >= options->n_snapshots;
	recording->run.until.end_ns = 0;
	if (options->n_snapshots)
		recording_take_snapshot(recording);
	aggregating->condition.aggr = NULL;
}

void recording_tell_conditions(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	kymo_cleanup_free char *sentence = NULL;
	size_t n = 0;

	if (!recording->output.aggregating || !recording->output.aggregating->has_conditions ||
	    recording->run.until.n_held)
		return;
	for (size_t i = 0; i < options->n_aggregations; i++)
		n += options->aggregations[i].kind == KYMO_AGGR_UNTIL;
	if (asprintf(&sentence, "%s held: %s%s has the %srecords up to the end",
		     n == 1 ? "the condition of --until never" : "no condition of --until ever",
		     options->n_snapshots ? "no snapshot was taken, and " : "", options->directory,
		     options->keep ? "newest " : "") >= 0 &&
	    options->warn)
		options->warn(sentence, options->data);
}
