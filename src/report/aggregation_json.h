/* The table of one aggregation as a JSON object. Private to the room. */
#ifndef KYMO_REPORT_AGGREGATION_JSON_H
#define KYMO_REPORT_AGGREGATION_JSON_H

#include <stdio.h>

#include "aggr/table.h"
#include "base/error.h"

/* `is_whole`: the trace has its rows. */
struct kymo_error *kymo_aggregation_json_write(const struct kymo_aggr_table *table, bool is_whole, FILE *out);

#endif
