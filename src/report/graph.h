/* Calls as they are nested, a line for each that calls nobody, two for others. */
#ifndef KYMO_REPORT_GRAPH_H
#define KYMO_REPORT_GRAPH_H

#include "ctf/ctf.h"
#include "report/names.h"
#include "report/page.h"

struct graph_filter {
	bool has_tid;
	int32_t tid;			/* of this thread alone */
	const char *function;		/* calls of functions that match, and what happens within them; NULL: all */
};

/* Write the records of `reader`, from where it is, to its end. */
struct kymo_error *kymo_graph_write(struct kymo_ctf_reader *reader, const struct names *names,
				    const struct graph_filter *filter, const struct page *page);

#endif
