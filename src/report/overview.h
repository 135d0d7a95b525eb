/* The first lines of the summary for a terminal. */
#ifndef KYMO_REPORT_OVERVIEW_H
#define KYMO_REPORT_OVERVIEW_H

#include "report/summary.h"

/* The first lines: what, when, how many, activity over time, losses, damage. */
struct kymo_error *kymo_summary_overview(const struct summary *summary, const struct page *page);

#endif
