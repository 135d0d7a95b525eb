/*
 * Calls of one aggregation in one process: entries paired with returns, by the rules of report/calls.h. Spans of
 * markers are paired by the rule of report/spans.h: each function has a stack of its own, and an end goes with the last
 * beginning.
 *
 * Records come from one ring at a time, and a thread's records are in several rings. So they wait until no older record
 * can come (kymo_open_calls_settle()). What waits is bounded: beyond, the oldest are taken as they are.
 */
#ifndef KYMO_AGGR_CALLS_H
#define KYMO_AGGR_CALLS_H

#include <stdint.h>

#include "aggr/entry_records.h"
#include "aggr/stacks.h"
#include "aggr/waiting.h"
#include "base/error.h"

#define KYMO_CALLS_WAITING_MAX (1u << 20)
#define KYMO_CALLS_BYTES_MAX (64u << 20) /* of the bytes of records that wait */

enum kymo_call_end {
	KYMO_CALL_RETURNED,
	KYMO_CALL_OVER_LOSS,     /* `ticks` means nothing */
	KYMO_CALL_WITHOUT_ENTRY, /* `entry` is NULL */
};

struct kymo_open_calls {
	struct kymo_waiting waiting;
	uint64_t n_bytes; /* of records that wait */
	struct kymo_entry_records entries;
	uint64_t n_forgotten;        /* records of open calls' entries for which there was no room */
	struct call_thread *threads; /* hash by thread id, and by function where that has a stack of its own */
	size_t n_threads, size;
	uint64_t loss_end; /* of those that have begun, the latest; 0: none has */
};

/* A call has ended. What it was entered with is in entry->kept, kept_faults and kept_stack. */
typedef void (*kymo_call_ended)(void *data, enum kymo_call_end end, const struct frame *entry,
				const struct kymo_call_hit *leave);

void kymo_open_calls_deinit(struct kymo_open_calls *calls);

/* A record has come. */
struct kymo_error *kymo_open_calls_add(struct kymo_open_calls *calls, const struct kymo_call_hit *hit);

/* All records from before `tsc` have come: pair those. */
struct kymo_error *kymo_open_calls_settle(struct kymo_open_calls *calls, uint64_t tsc, kymo_call_ended ended,
					  void *data);

#endif
