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
#include "report/stats.h"

/* Threads beyond that are counted together: tids are the target's words. */
#define MAX_THREADS (1u << 20)

/* Distinct threads of one probe are told apart up to that many. */
#define MAX_PROBE_THREADS (1u << 16)

#define TIMELINE_BINS 512

struct field_stats {
	struct stats stats;		/* of what could be read */
	uint64_t faults;
};

/* Times are TSC values. */
struct probe {
	const struct kymo_ctf_event *event;
	uint64_t count, first, last;
	struct stats gaps;		/* ns between one record and the next, of all threads */
	uint64_t *threads;		/* a bit for each thread's place in the model */
	size_t n_words;
	uint32_t n_threads;
	bool more_threads;		/* than are counted */
	struct field_stats fields[];	/* event->n_fields */
};

struct thread {
	int32_t tid;
	uint64_t count, first, last;
};

struct model {
	const struct kymo_ctf_trace *trace;
	struct probe **probes;		/* as trace->events; NULL: never hit */
	size_t n_hit;			/* probes that were hit */
	KYMO_VEC(struct thread) threads;	/* as they came */
	uint32_t *index;		/* hash of tid: place in `threads` + 1, or 0 */
	size_t index_size;		/* a power of two */
	struct thread *last_thread;
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

/* Take in one record; records come in the order of time, or nearly. */
struct kymo_error *kymo_model_add(struct model *model, const struct kymo_ctf_record *record);

/* Nanoseconds from the first record to the last, and to `tsc` (negative before it). */
uint64_t kymo_model_duration_ns(const struct model *model);
int64_t kymo_model_relative_ns(const struct model *model, uint64_t tsc);

/* Records a second over the trace's duration; 0 where it has none. */
double kymo_model_rate(const struct model *model, uint64_t count);

/* The probes that were hit, most often first, and the threads likewise. Fresh arrays; NULL when memory is out. */
struct probe **kymo_model_sorted_probes(const struct model *model);
struct thread **kymo_model_sorted_threads(const struct model *model);

#endif
