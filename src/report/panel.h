/*
 * A small histogram with a title; several stand side by side where the page is wide enough.
 */
#ifndef KYMO_REPORT_PANEL_H
#define KYMO_REPORT_PANEL_H

#include "base/naming.h"
#include "report/page.h"
#include "report/stats.h"
#include "report/text.h"
#include "wire/types.h"

/* A row for each bucket, and one for faults. */
#define MAX_ROWS (N_BUCKETS + 1)

struct panel_row {
	char label[TEXT_NUMBER];
	uint64_t count;
	bool skipped; /* stands for a run of empty buckets */
};

struct panel {
	const char *title; /* the caller's, safe */
	char note[160];    /* range and mean */
	unsigned int n_rows, label_columns, count_columns;
	uint64_t largest;
	struct panel_row rows[MAX_ROWS];
};

enum panel_kind {
	PANEL_DECIMAL,
	PANEL_HEX,
	PANEL_TIME, /* nanoseconds; always buckets, never single values */
};

/* Fill in a panel. Sorts the distinct values in `stats`. The row of `faults`, values that could not be had, is named
 * `fault`. */
void kymo_panel_init(struct panel *panel, const struct page *page, const char *title, enum panel_kind kind,
		     struct stats *stats, uint64_t faults, const char *fault);

/* The same of values that have names, as `stats` was told: a row for each that has come, of MAX_NAMED at most, and one
 * for all others; without range and mean. */
void kymo_panel_init_names(struct panel *panel, const struct page *page, const char *title, struct stats *stats,
			   const struct kymo_naming *naming, uint64_t faults, const char *fault);

/* The same of values of a real type: range and mean, and rows for what is not a number and for faults. */
void kymo_panel_init_reals(struct panel *panel, const struct page *page, const char *title, enum kymo_type type,
			   const struct reals *reals, uint64_t faults, const char *fault);

/* The same without rows, for kymo_panel_add(). */
void kymo_panel_init_note(struct panel *panel, const struct page *page, const char *title, enum panel_kind kind,
			  const struct stats *stats);

/* Add a row, as long as there are fewer than MAX_ROWS. */
void kymo_panel_add(struct panel *panel, const char *label, uint64_t count);

/* Write `n` panels, as many in a row as fit. */
void kymo_panels_write(const struct panel *panels, unsigned int n, const struct page *page);

#endif
