/*
 * Which part of a trace a report is of: threads, processes, probes, a span of time. Records of other threads and
 * processes are passed over as if they were not there. Records of other probes and times still say which calls are
 * open, so that a call that begins within the span has its duration; they are not shown and not counted.
 */
#ifndef KYMO_REPORT_FILTER_H
#define KYMO_REPORT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/ctf.h"
#include "report/names.h"
#include "report/report.h"

struct kymo_pattern;

struct filter {
	const struct kymo_report_filter *words;
	const struct kymo_ctf_trace *trace;
	bool *is_selected; /* as trace->events; NULL: all are */
	bool has_origin;
	bool has_met_thread; /* a record of a selected thread has come */
	uint64_t origin;     /* TSC of the trace's first record */
	uint64_t from, to;   /* of what is shown, both inclusive */
};

/* `words`, `trace` and `names` must outlive the filter. NOT_FOUND where the trace has no thread, process or
 * probe of a name. */
struct kymo_error *kymo_filter_init(struct filter *filter, const struct kymo_report_filter *words,
				    const struct kymo_ctf_trace *trace, const struct names *names);
void kymo_filter_deinit(struct filter *filter);

/* Each record, in the order of time: false where its thread or process is not selected. */
bool kymo_filter_takes(struct filter *filter, const struct kymo_ctf_record *record);

/* The trace was read: NOT_FOUND where it has no record of the threads that are selected. */
struct kymo_error *kymo_filter_check(const struct filter *filter);

/* Does the glob match the event, by its name, its function, or both as they are shown? `pattern` is the glob's, for C++
 * and Rust, or NULL. */
bool kymo_filter_matches(const char *glob, const struct kymo_pattern *pattern, const struct kymo_ctf_event *event,
			 const struct event_text *text);

/* Is one thread selected, by its id? */
bool kymo_filter_is_one_thread(const struct filter *filter);

/* Does it leave anything out? */
static inline bool kymo_filter_is_part(const struct filter *filter)
{
	const struct kymo_report_filter *words = filter->words;

	return words->n_threads || words->n_processes || words->n_probes || words->has_from || words->has_to;
}

static inline bool kymo_filter_has_event(const struct filter *filter, const struct kymo_ctf_event *event)
{
	return !filter->is_selected || filter->is_selected[event - filter->trace->events];
}

static inline bool kymo_filter_has_time(const struct filter *filter, uint64_t tsc)
{
	return tsc >= filter->from && tsc <= filter->to;
}

/* What the record says is shown, or what it begins. */
static inline bool kymo_filter_shows(const struct filter *filter, const struct kymo_ctf_record *record)
{
	return kymo_filter_has_time(filter, record->tsc) && kymo_filter_has_event(filter, record->event);
}

#endif
