/* One hit of an aggregated probe, or one call, and what it adds to a table or means for the recording. Private to the
 * room. */
#ifndef KYMO_RECORD_AGGREGATE_HIT_H
#define KYMO_RECORD_AGGREGATE_HIT_H

#include "record/aggregate.h"

/* What a hit, or a call that has ended, is added with. */
struct hit {
	struct recording *recording;
	struct record_source *source;
	struct aggregation *aggregation;
	const uint64_t *values, *return_values;
	uint8_t faults, return_faults;
	uint32_t stack;
	uint64_t ticks;
	int32_t tid;
	uint64_t tsc;
	uint32_t event;
	struct kymo_error *error; /* the first of aggregate_end_call() */
};

/* Add it to the table of its aggregation; or, of a condition, note that it holds. */
void aggregate_add_hit(const struct hit *hit);

/* The same of a call that has ended: kymo_call_ended(), where `data` is a struct hit that says whose call it is. */
void aggregate_end_call(void *data, enum kymo_call_end end, const struct frame *entry,
			const struct kymo_call_hit *leave);

#endif
