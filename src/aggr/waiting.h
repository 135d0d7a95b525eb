/*
 * Records that wait until no older one can come, taken in the order of time.
 *
 * Each ring has its records in that order, so what comes is a few runs of rising stamps. They are merged by a heap of
 * the runs' first records, and no record is moved for it. Records of one stamp are taken as they came.
 */
#ifndef KYMO_AGGR_WAITING_H
#define KYMO_AGGR_WAITING_H

#include <stdint.h>

#include "aggr/call_hit.h"
#include "base/vec.h"

struct kymo_waiting_run {
	size_t next, end; /* of `items` */
};

/* All of it zero: none waits. */
struct kymo_waiting {
	KYMO_VEC(struct kymo_call_hit) items;
	KYMO_VEC(struct kymo_waiting_run) runs;
	KYMO_VEC(size_t) heap; /* of runs, while they are taken */
	size_t n;              /* records that wait */
};

/* Frees the lists, and nothing that records lead to. */
void kymo_waiting_deinit(struct kymo_waiting *waiting);

/* Append a copy of a record. NULL: memory is out; nothing has changed then. Good until the next one is appended. */
struct kymo_call_hit *kymo_waiting_add(struct kymo_waiting *waiting, const struct kymo_call_hit *hit);

/* Begin to take records. False: memory is out; all wait as before. */
bool kymo_waiting_begin(struct kymo_waiting *waiting);

/* The oldest record, or NULL. Between begin and end; good until the end. */
struct kymo_call_hit *kymo_waiting_oldest(const struct kymo_waiting *waiting);

/* The oldest record waits no more. */
void kymo_waiting_pop(struct kymo_waiting *waiting);

/* What has not been taken goes on to wait. */
void kymo_waiting_end(struct kymo_waiting *waiting);

#endif
