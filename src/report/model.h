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
#include "ctf/ctf.h"
#include "report/filter.h"
#include "report/pairs.h"
#include "report/locations.h"
#include "report/stats.h"
#include "report/threads.h"

/* Distinct threads of one probe are told apart up to that many. */
#define MAX_PROBE_THREADS (1u << 16)

#define TIMELINE_BINS 512

struct field_stats {
	struct stats stats; /* of integers that could be read */
	struct reals reals; /* of doubles, likewise */
	uint64_t faults;
};

/* Times are TSC values. */
struct probe {
	const struct kymo_ctf_event *event; /* of several locations the first */
	uint64_t count, first, last;
	uint64_t recent;   /* of these, since model->since */
	struct stats gaps; /* ns between one record and the next, of all threads */
	uint64_t *threads; /* a bit for each thread's index in the model */
	size_t n_words;
	uint32_t n_threads;
	bool more_threads;           /* than are counted */
	struct field_stats fields[]; /* event->n_fields */
};

/* Of one entry of the trace's table of processes. */
struct process_count {
	const struct kymo_ctf_process *process;
	uint64_t count, recent, first, last;
};

struct model {
	const struct kymo_ctf_trace *trace;
	struct location *locations; /* as trace->events */
	uint64_t *counts;           /* likewise: records of the event alone */
	struct probe **probes;      /* likewise, at its first location; NULL: never hit */
	size_t n_probes, n_hit; /* all that the filter has, and those that were hit; returns of system calls are none */
	uint64_t n_returns;     /* records of returns of system calls */
	const struct filter *filter; /* NULL: everything is counted */
	struct threads threads;
	size_t n_threads; /* of these, with a record that is counted */
	bool has_pairs;   /* `pairs` is wanted */
	struct pairs pairs;
	struct process_count *processes;  /* as trace->processes */
	uint64_t other_threads;           /* records of threads beyond MAX_THREADS */
	bool has_zero, has_first;         /* there is a record, and one in the filter's time */
	uint64_t zero;                    /* the first record of the trace */
	uint64_t since;                   /* each stream has its records from then on; what is older is not in rates */
	uint64_t count, recent;           /* in all, and since then */
	uint64_t first, last;             /* of all records in the filter's time, whatever their threads and probes */
	uint64_t timeline[TIMELINE_BINS]; /* records from `origin`, in steps of 2^timeline_shift ticks */
	uint64_t origin;
	unsigned int timeline_shift;
	uint32_t cpus[4096 / 32]; /* a bit each */
	uint32_t n_cpus;
};

/* The trace must outlive the model. */
struct kymo_error *kymo_model_init(struct model *model, const struct kymo_ctf_trace *trace);
void kymo_model_deinit(struct model *model);

/* Count only what the filter shows, by thread and probe, too, if `has_pairs`. It must outlive the model. */
void kymo_model_filter(struct model *model, const struct filter *filter, bool has_pairs);

/* Is the event at this index of the trace's table the first of a probe that the filter has? */
bool kymo_model_is_probe(const struct model *model, size_t at);

/* Before the first record is seen: see kymo_ctf_reader_whole_since(). */
void kymo_model_begin(struct model *model, uint64_t whole_since);

/* Before anything else is said of it: there is a record at that time. */
void kymo_model_see(struct model *model, uint64_t tsc);

/* Take in one record that is shown; records come in the order of time, or nearly. `thread_ret` is its thread's index in
 * `threads`, or NO_THREAD. */
struct kymo_error *kymo_model_add(struct model *model, const struct kymo_ctf_record *record, size_t *thread_ret);

/* Nanoseconds from the first record that is shown to the last; and from the first of the trace to `tsc` (negative
 * before it). */
uint64_t kymo_model_duration_ns(const struct model *model);
int64_t kymo_model_relative_ns(const struct model *model, uint64_t tsc);

/* Nanoseconds that rates are of: as the duration, but not from before `since`. */
uint64_t kymo_model_rated_ns(const struct model *model);

/* A second, of `recent` records in that time; 0 where it has none. */
double kymo_model_rate(const struct model *model, uint64_t recent);

/* Records that probes' counts add up to: a system call that returned has two records, and counts once. */
static inline uint64_t kymo_model_of_probes(const struct model *model)
{
	return model->count - model->n_returns;
}

/* The probes that were hit, most often first, and the threads likewise. Fresh arrays; NULL when memory is out. */
struct probe **kymo_model_sorted_probes(const struct model *model);
struct thread **kymo_model_sorted_threads(const struct model *model);

/* Those processes that have a record, likewise. */
const struct process_count **kymo_model_sorted_processes(const struct model *model, size_t *n_ret);

#endif
