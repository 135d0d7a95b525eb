/* Calls as they are nested: one line for each call without calls in it, two lines for other calls. */
#ifndef KYMO_REPORT_GRAPH_H
#define KYMO_REPORT_GRAPH_H

#include "report/filter.h"
#include "report/names.h"
#include "report/page.h"

/* Write the records of `reader`, from where it is, to its end. `function`: calls of functions that match the glob, and
 * what happens within them; NULL: all. */
struct kymo_error *kymo_graph_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				    const char *function, const struct page *page);

#endif
