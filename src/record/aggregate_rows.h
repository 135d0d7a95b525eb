/* Rows of aggregations as events of the trace: kymo-trace(5) tells what they hold. Private to the room. */
#ifndef KYMO_RECORD_AGGREGATE_ROWS_H
#define KYMO_RECORD_AGGREGATE_ROWS_H

#include "record/aggregate.h"

/* Make the events of an aggregation, which is the one of that number. */
struct kymo_error *aggregate_rows_describe(struct recording *recording, struct aggregation *aggregation, size_t number);

/* Write all rows of all aggregations as they are now, with one stamp. */
struct kymo_error *aggregate_rows_write(struct recording *recording);

#endif
