/* Stacks of records, added up. */
#ifndef KYMO_REPORT_STACKS_H
#define KYMO_REPORT_STACKS_H

#include "base/error.h"
#include "report/filter.h"
#include "report/page.h"
#include "report/report.h"

/* Folded, as a flame graph, or as the callers or callees of `options->function`, as `options->mode` says. NOT_FOUND
 * where the trace has no stacks, or no stack has the function. */
struct kymo_error *kymo_stacks_write(struct kymo_ctf_reader *reader, const char *dir, struct filter *filter,
				     const struct kymo_report_options *options, const struct page *page);

#endif
