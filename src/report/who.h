/* The summary's tables of processes and threads. */
#ifndef KYMO_REPORT_WHO_H
#define KYMO_REPORT_WHO_H

#include "report/page.h"
#include "report/summary.h"

/* Nothing where the trace is of one process. */
struct kymo_error *kymo_who_processes(const struct summary *summary, const struct page *page);

struct kymo_error *kymo_who_threads(const struct summary *summary, const struct page *page);

#endif
