/*
 * The looks at the text of the processes that are recorded: 20 times a second each, as far as that takes no more than a
 * hundredth of a CPU.
 *
 * What a look has cost is paid for by a hundred times as long a pause for all looks. Two milliseconds, as for 10,000
 * probes on 3,000 pages, make one look in 200 ms; a thousand processes of 20 microseconds are looked at in turn, each
 * once in two seconds.
 */
#include "record/looks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/install/answer.h"
#include "probe/look/look.h"
#include "record/describe.h"
#include "record/recording.h"
#include "record/warnings.h"

#define LOOK_NS UINT64_C(50000000)
#define COST_FACTOR 100
#define CREDIT_NS UINT64_C(50000000) /* of pauses that were not needed */
#define NOTE_NS UINT64_C(1000000000)
#define TOLD_MAX 3 /* gaps of one process that are told at once */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

static const char *cause_of(const struct kymo_gap *gap)
{
	switch (gap->cause) {
	case KYMO_GAP_BREAKPOINT:
		return "breakpoint";
	case KYMO_GAP_DROPPED:
		return "dropped";
	default:
		return "changed";
	}
}

static void tell_gap(struct recording *recording, const struct target *target, const struct kymo_gap *gap)
{
	static const char *const words[] = {
		[KYMO_GAP_BREAKPOINT] =
			"another tool has set a breakpoint there (a uprobe of perf or bpftrace, a debugger)",
		[KYMO_GAP_DROPPED] = ("the file's own bytes are there: a page of code was dropped, or another "
				      "tool's breakpoint has come and gone"),
		[KYMO_GAP_CHANGED] = "something else has changed the code",
	};
	kymo_cleanup_free char *more = NULL;

	if (gap->n > 1 && asprintf(&more, " and %zu more", gap->n - 1) < 0)
		more = NULL;
	recording_warn(recording,
		       "process %d: the probe at %s%s records nothing: %s; kymo puts it in again when the file's bytes "
		       "are there, and 'kymo report' shows the gaps",
		       target->pid, gap->name, more ? more : "", words[gap->cause]);
}

/* Into the trace: what is known now. Those that are open have no end. */
static void note_look(struct recording *recording, const struct target *target)
{
	size_t n;
	const struct kymo_gap *gaps = kymo_look_gaps(target->look, &n);

	for (size_t i = 0; i < n; i++) {
		kymo_cleanup_free char *value = NULL;
		char key[64];

		if (!gaps[i].n)
			continue;
		snprintf(key, sizeof(key), "gap_%" PRId32 "_%" PRIu64 "_%zu", target->inner_pid, target->look_begin, i);
		if (asprintf(&value, "%s %zu %" PRIu64 " %" PRIu64 " %s", cause_of(&gaps[i]), gaps[i].n, gaps[i].begin,
			     gaps[i].is_open ? 0 : gaps[i].end, gaps[i].name) < 0)
			value = NULL;
		if (value)
			kymo_error_destroy(kymo_ctf_trace_set_env(&recording->output.files.trace, key, value));
	}
	recording->run.looks.is_due |= n > 0;
}

static void tell_new(struct recording *recording, struct target *target)
{
	size_t n;
	const struct kymo_gap *gaps = kymo_look_gaps(target->look, &n);

	for (size_t i = target->n_gaps_told; i < n && i < TOLD_MAX; i++)
		if (!gaps[i].end)
			tell_gap(recording, target, &gaps[i]);
	if (n > target->n_gaps_told)
		note_look(recording, target);
	target->n_gaps_told = n;
}

void recording_end_look(struct recording *recording, struct target *target)
{
	const struct kymo_gap *gaps;
	size_t n, n_open = 0;

	if (!target->look)
		return;
	kymo_look_end(target->look, kymo_clock_tsc());
	gaps = kymo_look_gaps(target->look, &n);
	for (size_t i = 0; i < n; i++)
		n_open += gaps[i].is_open ? gaps[i].n : 0;
	note_look(recording, target);
	if (n)
		recording_warn(recording,
			       "process %d: probes were out of its code %zu time%s, and what ran there then is not "
			       "recorded; %zu of them were out at the end",
			       target->pid, n, n == 1 ? "" : "s", n_open);
	kymo_look_destroy(target->look);
	target->look = NULL;
	target->n_gaps_told = 0;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool is_fit(const struct target *target, uint64_t now)
{
	return target->source && target->source->n_rings && !target->is_sharing && !target->is_in_startup &&
	       !target->is_clean && target->next_look_ns <= now;
}

static struct kymo_error *look_at(struct recording *recording, struct target *target)
{
	uint64_t cost = cpu_ns();
	struct kymo_error *error = NULL;

	/* A library that was closed, and another one in its place, are no change of the text: they are seen first. */
	if (kymo_probes_are_asked(target->source->probes))
		return NULL;
	if (!target->look) {
		error = kymo_look_create(target->source->probes, target->process, &target->look);
		target->look_begin = kymo_clock_tsc();
	}
	if (!error)
		error = kymo_look(target->look, kymo_clock_tsc(), &recording->result.stopped_ns);
	if (target->look)
		tell_new(recording, target);
	recording->run.looks.free_ns += (cpu_ns() - cost) * COST_FACTOR;
	target->next_look_ns = kymo_now_ns() + LOOK_NS;
	if (error && error->code == KYMO_ERROR_NO_MEMORY)
		return error;
	kymo_error_destroy(error); /* it has ended, or has another tracer for a moment: the next look tries again */
	return NULL;
}

struct kymo_error *recording_look(struct recording *recording)
{
	struct recording_looks *looks = &recording->run.looks;
	uint64_t now = kymo_now_ns();
	struct kymo_error *error = NULL;

	if (looks->free_ns + CREDIT_NS < now)
		looks->free_ns = now - CREDIT_NS;
	for (size_t i = 0; i < recording->run.targets.n && looks->free_ns <= now && !error; i++) {
		looks->next = (looks->next + 1) % recording->run.targets.n;
		if (is_fit(recording->run.targets.items[looks->next], now))
			error = look_at(recording, recording->run.targets.items[looks->next]);
	}
	if (error || !looks->is_due || now < looks->next_note_ns || !recording->output.exists)
		return error;
	looks->is_due = false;
	looks->next_note_ns = now + NOTE_NS;
	return recording_write_metadata(recording);
}
