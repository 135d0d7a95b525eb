/* The summary for a terminal. */
#ifndef KYMO_REPORT_SUMMARY_H
#define KYMO_REPORT_SUMMARY_H

#include "ctf/ctf.h"
#include "report/calls.h"
#include "report/model.h"
#include "report/names.h"
#include "report/page.h"

/* All that the summary draws on; everything is the caller's. */
struct summary {
	const char *dir;
	const struct kymo_ctf_reader *reader; /* read to its end */
	const struct kymo_ctf_trace *trace;
	struct model *model;
	const struct calls *calls; /* finished */
	const struct aggregations *aggregations;
	const struct names *names;
	bool all;
};

/* All of it. */
struct kymo_error *kymo_summary_write(const struct summary *summary, const struct page *page);

#endif
