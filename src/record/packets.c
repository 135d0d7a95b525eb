#include "record/packets.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/pad.h"
#include "base/io.h"
#include "probe/install/answer.h"
#include "probe/memory/state.h"
#include "probe/threads/watch.h"
#include "proc/process.h"
#include "record/aggregate.h"
#include "record/kept_calls.h"
#include "record/kernel.h"
#include "record/recording.h"
#include "record/stacks.h"
#include "record/warnings.h"
#include "strace/recorded/source.h"

/* A producer that holds a packet is done within nanoseconds, unless it has lost its CPU to others. */
#define FLUSH_PAUSE_NS 1000000
#define FLUSH_TRIES 20
#define GROW_NS 1000000 /* between two looks at all rings while packets are copied */

/* A ring of sequences is closed from its own CPU. Where this process may not run there, the packet waits until it is
 * full. */
static uint64_t close_on_cpu(struct kymo_wire_ring *shared, uint32_t cpu)
{
	cpu_set_t before, here;
	uint64_t stamp = 0;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		return 0;
	if (kymo_pad_close_ring(shared, cpu))
		stamp = kymo_clock_tsc();
	sched_setaffinity(0, sizeof(before), &before);
	return stamp;
}

struct kymo_error *source_open_rings(struct recording *recording, struct record_source *source)
{
	size_t n = kymo_probes_n_rings(source->probes);

	stacks_note(recording, source);
	if (source->n_rings || !n)
		return NULL;
	source->rings = calloc(n, sizeof(*source->rings));
	source->shared = calloc(n, sizeof(*source->shared));
	source->positions = calloc(n, sizeof(*source->positions));
	if (!source->rings || !source->shared || !source->positions)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		struct kymo_shared_ring *ring = &source->shared[i];

		*ring = source->adopted ? kymo_adopted_ring(source->adopted, source->probes, i)
					: kymo_probes_ring(source->probes, i);
		kymo_ring_init(&source->rings[i], ring->shared, ring->data, ring->subbuffer_size, ring->n_subbuffers,
			       recording->wanted.options->overwrite);
		if (ring->is_sequenced)
			source->rings[i].close = close_on_cpu;
		source->rings[i].cpu = ring->cpu;
		source->positions[i].ring = i;
	}
	source->n_rings = n;
	if (!source->adopted)
		kymo_probes_watch(source->probes); /* from now on a reader looks */
	return NULL;
}

static void note_full(struct recording *recording, const struct record_source *source)
{
	if (source->buffer_size < recording->wanted.options->buffer_size)
		recording->result.full_size = source->buffer_size;
	else
		recording->result.were_full = true;
}

/* What rings have lost that have not all of their memory, they have lost for want of it. */
static void note_small(struct recording *recording, const struct record_source *source)
{
	for (size_t i = 0; i < source->n_rings && !recording->result.were_small_yet; i++)
		if (!kymo_probes_is_ring_whole(source->probes, source->adopted, i))
			recording->result.were_small_yet = kymo_ring_lost(&source->rings[i]) > 0;
}

/* A ring that has not all of its memory is not drained. */
static void tell_growth(struct recording *recording, struct record_source *source, int err)
{
	if (!err || source->is_growth_told)
		return;
	source->is_growth_told = true;
	recording_warn(recording,
		       "the rings of process %d do not get all of their memory (%s): what does not fit into the part "
		       "that they have is lost; a smaller --buffer needs less",
		       source->pid, strerror(err));
}

static bool grow(struct recording *recording, struct record_source *source, bool is_short)
{
	bool has_grown;

	note_small(recording, source); /* before it may be whole */
	has_grown = kymo_probes_grow(source->probes, source->adopted, is_short);
	tell_growth(recording, source, kymo_probes_growth_error(source->probes, source->adopted));
	return has_grown;
}

/* Rings that producers are about to fill do not wait for their turn, in whichever process. Whether there were any. */
static bool grow_short_ones(struct recording *recording)
{
	bool have_grown = false;

	recording->run.grown_ns = kymo_now_ns();
	for (size_t i = 0; i < recording->run.sources.n; i++) {
		struct record_source *source = recording->run.sources.items[i];

		while (source->n_rings && grow(recording, source, true))
			have_grown = true;
	}
	return have_grown;
}

static struct kymo_error *drain_ring(struct recording *recording, struct record_source *source, size_t i, size_t *n_ret)
{
	if (recording->output.aggregating)
		return aggregate_drain(recording, source, i, n_ret);
	if (recording->output.stacking)
		return stacks_drain(recording, source, i, n_ret);
	return kymo_trace_drain(&recording->output.files, &source->positions[i], &source->rings[i],
				source->shared[i].cpu, n_ret);
}

/* `ends`: no producer is left. */
static struct kymo_error *drain_source(struct recording *recording, struct record_source *source, bool ends,
				       size_t *n_ret)
{
	*n_ret = 0;
	if (ends)
		note_small(recording, source);
	else if (source->n_rings)
		*n_ret = grow(recording, source, false);
	for (size_t i = 0; i < source->n_rings; i++) {
		struct kymo_error *error = NULL;
		size_t n;

		if (!ends && !kymo_probes_is_ring_whole(source->probes, source->adopted, i)) {
			if (recording->output.aggregating)
				error = aggregate_pass_over(recording, source, i);
			if (error)
				return error;
			continue;
		}
		error = drain_ring(recording, source, i, &n);
		if (error)
			return error;
		/* A ring that was full has as many packets as it can have. Spare ones, with fewer, are small whatever
		 * --buffer says. */
		if (n >= source->rings[0].n_subbuffers && kymo_ring_lost(&source->rings[i]))
			note_full(recording, source);
		*n_ret += n;
		if (n && !ends && kymo_now_ns() > recording->run.grown_ns + GROW_NS) /* that took time */
			*n_ret += grow_short_ones(recording);
	}
	return recording->output.aggregating ? aggregate_settle(recording, source, ends) : NULL;
}

struct kymo_error *recording_drain(struct recording *recording, size_t *n_ret)
{
	struct kymo_error *error = NULL;
	size_t n;

	*n_ret = grow_short_ones(recording);
	for (size_t i = 0; i < recording->run.sources.n && !error; i++) {
		error = drain_source(recording, recording->run.sources.items[i], false, &n);
		*n_ret += error ? 0 : n;
	}
	return error;
}

static uint64_t lost_in_vforks_of(const struct record_source *source)
{
	if (!source->n_rings)
		return 0;
	return source->adopted ? kymo_adopted_lost_in_vforks(source->adopted)
			       : kymo_probes_lost_in_vforks(source->probes);
}

static uint64_t lost_in_vforks(const struct recording *recording)
{
	uint64_t lost = recording->output.lost_in_vforks;

	for (size_t i = 0; i < recording->run.sources.n; i++)
		lost += lost_in_vforks_of(recording->run.sources.items[i]);
	return lost;
}

struct kymo_error *recording_note_vforks(struct recording *recording)
{
	return kymo_trace_vforks(&recording->output.files, lost_in_vforks(recording), recording->output.begin.tsc,
				 kymo_clock_tsc());
}

static uint64_t lost_of(const struct record_source *source)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < source->n_rings; i++)
		lost += kymo_ring_lost(&source->rings[i]);
	return lost + kept_calls_lost(source);
}

uint64_t recording_lost(const struct recording *recording)
{
	uint64_t lost = recording->output.lost + lost_in_vforks(recording) +
			(recording->run.kernel ? recording_kernel_lost(recording->run.kernel) : 0) +
			(recording->run.calls ? kymo_call_source_lost(recording->run.calls) : 0);

	for (size_t i = 0; i < recording->run.sources.n; i++)
		lost += lost_of(recording->run.sources.items[i]);
	return lost;
}

size_t recording_n_sites(const struct recording *recording)
{
	return recording->run.n_sites + (recording->run.kernel ? recording_kernel_n_sites(recording->run.kernel) : 0) +
	       (recording->run.calls ? KYMO_CALL_SOURCE_SITES : 0);
}

void recording_tell_late(struct recording *recording, const struct record_source *source)
{
	recording_warn(recording,
		       "process %d had to wait too long for probes in a library that it has loaded, and went on: its "
		       "first calls may be missing",
		       kymo_process_pid(source->process));
}

bool source_is_muted(const struct record_source *source)
{
	return source->adopted ? kymo_adopted_is_muted(source->adopted) : kymo_probes_are_muted(source->probes);
}

struct kymo_error *source_finish_rings(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = NULL;
	size_t n = 1;

	if (source->n_rings && source_is_muted(source))
		recording_warn(recording,
			       "process %d has made reading the time stamp counter a fault (strict seccomp, "
			       "PR_TSC_SIGSEGV): nothing was recorded of it, and of what it forked, from then on",
			       source->pid);
	if (source->n_rings && !source->adopted && !recording->run.is_ending &&
	    kymo_probes_were_too_late(source->probes))
		recording_tell_late(recording, source);
	for (size_t i = 0; i < source->n_rings; i++)
		kymo_ring_finish(&source->rings[i], kymo_clock_tsc());
	/* Twice: all that a ring holds, and what came meanwhile. A target that goes on claiming packets does not keep
	 * the recorder here. */
	for (int round = 0; round < 2 && !error && n; round++)
		error = drain_source(recording, source, true, &n);
	for (size_t i = 0; i < source->n_rings; i++) {
		struct kymo_error *last = kymo_trace_finish(&recording->output.files, &source->positions[i],
							    &source->rings[i], source->shared[i].cpu, kymo_clock_tsc());

		if (error)
			kymo_error_destroy(last);
		else
			error = last;
	}
	recording->output.lost += lost_of(source);
	recording->output.lost_in_vforks += lost_in_vforks_of(source);
	source->n_rings = 0;
	return error;
}

/* A ring whose last memory has the open packet keeps it open: producers would have no place until it grows. */
void recording_flush(struct recording *recording)
{
	for (size_t k = 0; k < recording->run.sources.n; k++) {
		const struct record_source *source = recording->run.sources.items[k];

		for (size_t i = 0; i < source->n_rings; i++)
			if (kymo_probes_has_next(source->probes, source->adopted, i))
				kymo_ring_flush(&source->rings[i], kymo_clock_tsc());
	}
}

/* Whether no complete packet waits in a ring that has not got all of its memory. */
static bool are_whole(const struct record_source *source)
{
	struct kymo_ring_packet packet;

	for (size_t i = 0; i < source->n_rings; i++)
		if (!kymo_probes_is_ring_whole(source->probes, source->adopted, i) &&
		    kymo_ring_peek(&source->rings[i], &packet))
			return false;
	return true;
}

static bool make_whole(struct record_source *source)
{
	while (!are_whole(source))
		if (!kymo_probes_grow(source->probes, source->adopted, false))
			return false;
	return true;
}

/* Close the open packet of a ring, once: each one that is closed takes the place of an older one, or of what producers
 * need meanwhile. `tries`: how often all rings together may be waited for. */
static bool close_once(struct kymo_ring *ring, int *tries)
{
	const struct timespec pause = { .tv_nsec = FLUSH_PAUSE_NS };
	bool is_closed = kymo_ring_flush(ring, kymo_clock_tsc());

	for (; !is_closed && *tries > 0; --*tries) {
		nanosleep(&pause, NULL);
		is_closed = kymo_ring_flush(ring, kymo_clock_tsc());
	}
	return is_closed;
}

bool recording_make_complete(struct recording *recording)
{
	bool is_complete = true;
	int tries = FLUSH_TRIES;

	for (size_t k = 0; k < recording->run.sources.n; k++) {
		struct record_source *source = recording->run.sources.items[k];

		for (size_t i = 0; i < source->n_rings; i++)
			is_complete &= close_once(&source->rings[i], &tries);
		is_complete &= make_whole(source);
	}
	return is_complete;
}
