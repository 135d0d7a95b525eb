/* Calls as they are nested: one line for each call without calls in it, two lines for other calls. */
#ifndef KYMO_REPORT_GRAPH_H
#define KYMO_REPORT_GRAPH_H

#include "report/fates.h"
#include "report/filter.h"
#include "report/names.h"
#include "report/page.h"

/* Write the records of `reader`, from where it is, to its end. `function`: calls of functions that match the glob, and
 * what happens within them; NULL: all. `fates` may be NULL. Nothing is written where they are needed and not known, as
 * far as the first records show it: the trace is to be read anew with them. */
struct kymo_error *kymo_graph_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				    struct fates *fates, const char *function, const struct page *page);

#endif
