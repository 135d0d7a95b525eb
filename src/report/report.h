/*
 * What a trace says, for a terminal, line by line, or for a program. Reads the directory alone, never a process.
 */
#ifndef KYMO_REPORT_REPORT_H
#define KYMO_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* A part of a trace. Words of one kind are alternatives; those of different kinds must all be true. */
struct kymo_report_filter {
	const char *const *threads, *const *processes; /* ids, or globs for the name or the command */
	const char *const *probes;                     /* globs for the event, or its function */
	size_t n_threads, n_processes, n_probes;       /* 0: all */
	bool has_from, has_to;
	uint64_t from_ns, to_ns; /* since the trace's first record */
};

enum kymo_report_mode {
	KYMO_REPORT_SUMMARY, /* counts, rates, distributions, losses */
	KYMO_REPORT_EVENTS,  /* a line a record, or a system call; losses in their place */
	KYMO_REPORT_JSON,    /* the summary's numbers as one JSON object; kymo-report(1) documents it */
	KYMO_REPORT_GRAPH,   /* calls as they are nested, with their durations */
	KYMO_REPORT_TREE,    /* calls by path, with their times added up */
	KYMO_REPORT_TABLES,  /* aggregations alone */
	KYMO_REPORT_FOLDED,  /* stacks: a line each, as flamegraph.pl takes them */
	KYMO_REPORT_FLAME,   /* a flame graph of them: a page of HTML */
	KYMO_REPORT_CALLERS, /* what has called `function`, and from where, with counts */
	KYMO_REPORT_CALLEES, /* what it has called */
};

struct kymo_report_options {
	enum kymo_report_mode mode;
	unsigned int width; /* columns of the summary; 0: 80 */
	bool whole;         /* names and tables of the summary are not cut to it */
	bool color;         /* ANSI colors */
	bool unicode;       /* the output takes UTF-8 */
	bool all;           /* every probe, thread, distribution (summary) and path (tree), not the first few */
	bool wall;          /* events: local time of day, not seconds since the first event */
	bool raw;           /* events: a line a record, of system calls too */
	bool json;          /* events: an object a line */
	bool by_thread;     /* summary, JSON: counts by thread and probe, too */
	struct kymo_report_filter filter;
	const char *function; /* graph: calls of functions that match this glob, and what happens within; NULL: all.
				 Callers, callees: whose */
};

/*
 * Report the trace in `dir` on `out`, which is flushed. Text from the trace is escaped (\x1b), so that it can't
 * command a terminal.
 * Memory is bounded by the numbers of probes and threads, and by how deep their calls are nested, whatever the length
 * of the trace.
 *
 * A call is in the filter's time if it begins there. Its probes' calls are shown or counted; calls of other probes are
 * not.
 *
 * Damage of the trace is no error: what can be read is reported, and a sentence says what was left out. Errors:
 * NOT_FOUND (also of a probe in the filter), BAD_DATA (nothing can be read), FAILED (`out` takes no more), NO_MEMORY.
 */
struct kymo_error *kymo_report(const char *dir, const struct kymo_report_options *options, FILE *out);

/* The tables of a recording that goes on, as kymo_report() has them at its end; `options` say how, but for the mode. */
struct kymo_aggr_table;
struct kymo_error *kymo_report_tables(const struct kymo_aggr_table *tables, size_t n,
				      const struct kymo_report_options *options, FILE *out);

/*
 * Report two traces beside each other, as a table or, with KYMO_REPORT_JSON, as one JSON object: for each probe its
 * count and rate, for each function its durations, in `a` and in `b`, and what has changed. Probes are the same where
 * they have the same name. The filter is for both; `options->mode` is KYMO_REPORT_SUMMARY or KYMO_REPORT_JSON. Text is
 * escaped, memory is bounded, damage is no error, and errors are those of kymo_report().
 */
struct kymo_error *kymo_report_diff(const char *a, const char *b, const struct kymo_report_options *options, FILE *out);

#endif
