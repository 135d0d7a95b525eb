/* Tables of the summary: a name, a count with its rate and share, and what else there is room for. */
#ifndef KYMO_REPORT_TABLE_H
#define KYMO_REPORT_TABLE_H

#include <stdint.h>

#include "report/page.h"
#include "report/summary.h"

/* Columns of a table; 0: not shown. */
struct columns {
	unsigned int name, count, bar, threads, time, decimals;
};

/* For rows of these names (safe), which become `labels_ret`: what the first column shows, for kymo_labels_destroy(). */
struct kymo_error *kymo_table_plan(const struct summary *summary, const struct page *page, const char *const *names,
				   size_t n, struct columns *ret, char ***labels_ret);

/* The first line; `name` heads the first column. */
void kymo_table_heading(const struct page *page, const struct columns *c, const char *name);

/* A row up to its bar; `recent` of `count` are since model->since, and its share is of `all`, not 0. Returns what is
 * left to fill up before the next column. */
unsigned int kymo_table_counts(const struct summary *summary, const struct page *page, const struct columns *c,
			       const char *name, uint64_t count, uint64_t recent, uint64_t all);

/* The last two columns, if they are shown. */
void kymo_table_times(const struct summary *summary, const struct page *page, const struct columns *c, uint64_t first,
		      uint64_t last);

/* Two spaces, and `text` at the right of its columns. */
void kymo_table_right(const struct page *page, enum ink ink, const char *text, unsigned int columns);

static inline unsigned int kymo_at_least(unsigned int columns, unsigned int least)
{
	return columns > least ? columns : least;
}

#endif
