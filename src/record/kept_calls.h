/* Records of returns that are written once their calls are known (KYMO_AGGR_CALLS): how long they took, and what was
 * there at their entries. Private to the room. */
#ifndef KYMO_RECORD_KEPT_CALLS_H
#define KYMO_RECORD_KEPT_CALLS_H

#include "record/aggregate.h"

/* A call has ended whose return's record waited. */
struct ended_call {
	const struct kymo_call_hit *leave;
	bool is_known;        /* when it began */
	uint64_t ns;          /* … it took so long */
	const uint8_t *entry; /* the record of its entry, of `entry_event` of the trace; NULL: it is not available */
	uint32_t entry_event;
};

/*
 * The record is written if the filter lets that duration through, or has nothing on durations. It goes with others of
 * its ring into the next packet.
 */
struct kymo_error *kept_calls_add(struct recording *recording, struct record_source *source,
				  struct aggregation *aggregation, const struct ended_call *call);

/* Write the packets of what has come since the last ones. */
struct kymo_error *kept_calls_write(struct recording *recording, struct record_source *source);

/* The source will have no more of them; free what was kept for it. */
void kept_calls_forget(struct recording *recording, struct record_source *source);

/* How many of a source were lost, as they came too late or could not be written. */
uint64_t kept_calls_lost(const struct record_source *source);

/* At the end: tell what a filter of durations could not decide. */
void kept_calls_tell(struct recording *recording);

#endif
