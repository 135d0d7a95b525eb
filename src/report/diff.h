/* Two recordings beside each other: what each probe counts and how long calls take, in one and in the other. */
#ifndef KYMO_REPORT_DIFF_H
#define KYMO_REPORT_DIFF_H

#include "report/page.h"
#include "report/summary.h"

/*
 * Tables for a terminal. A probe of the one is that of the other which has the same name. Rows stand in the order of
 * what has changed most: counts of probes, total times of calls. Errors: NO_MEMORY.
 */
struct kymo_error *kymo_diff_write(const struct summary *a, const struct summary *b, const struct page *page);

/* The same numbers as one JSON object, in the order of names; kymo-report(1) documents it. Errors: NO_MEMORY. */
struct kymo_error *kymo_diff_write_json(const struct summary *a, const struct summary *b, FILE *out);

#endif
