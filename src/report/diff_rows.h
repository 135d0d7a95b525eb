/* What two recordings have in common: probes and functions paired by their names. */
#ifndef KYMO_REPORT_DIFF_ROWS_H
#define KYMO_REPORT_DIFF_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/summary.h"

struct diff_row {
	const char *name;  /* as the trace has it */
	const char *shown; /* as users know it */
	const char *label; /* the same as a terminal may have it */
	bool is_there[2];  /* the recording has this probe, hit or not */
	union {            /* NULL: no record, or no call */
		const struct probe *probes[2];
		const struct function *functions[2];
	};
	double change; /* of the count, or of the total time in ns; above 0 where the second has more */
};

struct diff_rows {
	struct diff_row *items;
	size_t n;
};

/*
 * Probes that were hit, or functions that were called, in at least one of the two, in the order of names. Several of
 * one name are paired in their order. The rows point into both summaries. Fills in `ret`, whose items are to be freed.
 * Errors: NO_MEMORY.
 */
struct kymo_error *kymo_diff_probes(const struct summary *const sides[2], struct diff_rows *ret);
struct kymo_error *kymo_diff_functions(const struct summary *const sides[2], struct diff_rows *ret);

/* Put those that have changed most first. Rows that have changed as much stay in the order of names. */
void kymo_diff_sort(struct diff_rows *rows);

static inline double kymo_diff_total_ns(const struct function *function)
{
	return function && function->durations ? (double)function->durations->stats.sum : 0;
}

static inline uint64_t kymo_diff_count(const struct probe *probe)
{
	return probe ? probe->count : 0;
}

#endif
