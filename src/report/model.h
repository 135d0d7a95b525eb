/*
 * What the summary and the JSON say, gathered in one pass over the records. Memory grows with probes and threads, not
 * with records.
 */
#ifndef KYMO_REPORT_MODEL_H
#define KYMO_REPORT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "report/places.h"
#include "report/stats.h"
#include "report/threads.h"

/* Distinct threads of one probe are told apart up to that many. */
#define MAX_PROBE_THREADS (1u << 16)

#define TIMELINE_BINS 512

struct field_stats {
	struct stats stats;		/* of integers that could be read */
	struct reals reals;		/* of doubles, likewise */
	uint64_t faults;
};

/* Times are TSC values. */
struct probe {
	const struct kymo_ctf_event *event;	/* of several places the first */
	uint64_t count, first, last;
	struct stats gaps;		/* ns between one record and the next, of all threads */
	uint64_t *threads;		/* a bit for each thread's place in the model */
	size_t n_words;
	uint32_t n_threads;
	bool more_threads;		/* than are counted */
	struct field_stats fields[];	/* event->n_fields */
};

/* Of one entry of the trace's table of processes. */
struct process_count {
	const struct kymo_ctf_process *process;
	uint64_t count, first, last;
};

struct model {
	const struct kymo_ctf_trace *trace;
	struct place *places;		/* as trace->events */
	uint64_t *counts;		/* likewise: records of the event alone */
	struct probe **probes;		/* likewise, at its first place; NULL: never hit */
	size_t n_probes, n_hit;		/* all, and those that were hit */
	struct threads threads;
	struct process_count *processes;	/* as trace->processes */
	uint64_t other_threads;		/* records of threads beyond MAX_THREADS */
	uint64_t count, first, last;
	uint64_t timeline[TIMELINE_BINS];	/* records from `origin`, in steps of 2^timeline_shift ticks */
	uint64_t origin;
	unsigned int timeline_shift;
	uint32_t cpus[4096 / 32];	/* a bit each */
	uint32_t n_cpus;
};

/* The trace must outlive the model. */
struct kymo_error *kymo_model_init(struct model *model, const struct kymo_ctf_trace *trace);
void kymo_model_deinit(struct model *model);

/* Take in one record; records come in the order of time, or nearly. `thread_ret` is its thread's place in `threads`, or
 * NO_THREAD. */
struct kymo_error *kymo_model_add(struct model *model, const struct kymo_ctf_record *record, size_t *thread_ret);

/* Nanoseconds from the first record to the last, and to `tsc` (negative before it). */
uint64_t kymo_model_duration_ns(const struct model *model);
int64_t kymo_model_relative_ns(const struct model *model, uint64_t tsc);

/* Records a second over the trace's duration; 0 where it has none. */
double kymo_model_rate(const struct model *model, uint64_t count);

/* The probes that were hit, most often first, and the threads likewise. Fresh arrays; NULL when memory is out. */
struct probe **kymo_model_sorted_probes(const struct model *model);
struct thread **kymo_model_sorted_threads(const struct model *model);

/* Those processes that have a record, likewise. */
const struct process_count **kymo_model_sorted_processes(const struct model *model, size_t *n_ret);

#endif
