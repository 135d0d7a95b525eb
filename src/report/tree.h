/* Calls by the path on which they were made, with their times added up. */
#ifndef KYMO_REPORT_TREE_H
#define KYMO_REPORT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "report/fates.h"
#include "report/filter.h"
#include "report/names.h"
#include "report/page.h"

/* Read `reader` to its end and write the tree. Without `all`, paths
 * that took less than half a percent of the time are left out, and said. `fates` may be NULL. Nothing is written where
 * they are needed and not known: the trace is to be read anew with them. */
struct kymo_error *kymo_tree_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				   struct fates *fates, bool all, const struct page *page);

#endif
