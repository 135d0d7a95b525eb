/* The table of one aggregation as people read it. Private to the room. */
#ifndef KYMO_REPORT_AGGREGATION_TABLE_H
#define KYMO_REPORT_AGGREGATION_TABLE_H

#include "aggr/table.h"
#include "base/error.h"
#include "report/page.h"

/* A heading; a line a row, or a histogram a row; what is in none of them. `all`: every row, not the first few. */
struct kymo_error *kymo_aggregation_table_write(const struct kymo_aggr_table *table, const struct page *page, bool all);

#endif
