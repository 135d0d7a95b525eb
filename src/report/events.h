/* A line for each record. */
#ifndef KYMO_REPORT_EVENTS_H
#define KYMO_REPORT_EVENTS_H

#include "report/filter.h"
#include "report/names.h"
#include "report/page.h"
#include "report/report.h"

/* Write the records of `reader`, from where it is, to its end. Losses are lines in their place in time, damage is told
 * at the end. Unless `raw`, system calls are shown as calls, not as two records; a call is shown whole that begins in
 * the time of `filter`. */
struct kymo_error *kymo_events_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				     const struct kymo_report_options *options, const struct page *page);

#endif
