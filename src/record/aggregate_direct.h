/*
 * Records that go straight into one table: their words are integers at known places. Such a record takes a third of the
 * time that reading all of its members takes. Private to the room.
 */
#ifndef KYMO_RECORD_AGGREGATE_DIRECT_H
#define KYMO_RECORD_AGGREGATE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/aggr.h"
#include "ctf/ctf.h"

struct aggregating;
struct aggregation;

/* Where an integer is in a record. */
struct direct_word {
	uint32_t at; /* after the header */
	enum kymo_type type;
	bool is_tid; /* it is the thread, and not in the record's body */
};

/* How the records of an event are added. Zeroed: member by member. */
struct aggregate_direct {
	struct aggregation *aggregation; /* the one that they are for */
	bool has_faults;                 /* the first byte of each tells of faults */
	struct direct_word keys[KYMO_AGGR_KEYS_MAX], value;
};

/* What can be done with an event's records. */
struct aggregate_direct aggregate_direct_of(const struct aggregating *aggregating, const struct kymo_ctf_event *event);

/* Add the thread's record. `body` is all of it but the header. False: it has a fault, and was not added. */
bool aggregate_direct_add(const struct aggregate_direct *direct, int32_t tid, const uint8_t *body);

#endif
