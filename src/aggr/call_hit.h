/* A record of an entry or a return, as calls are paired by it (calls.h). */
#ifndef KYMO_AGGR_CALL_HIT_H
#define KYMO_AGGR_CALL_HIT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/event.h"

/* A record of an entry or a return, or a loss. */
struct kymo_call_hit {
	uint64_t tsc;
	uint64_t loss_end; /* not 0: records were lost from `tsc` up to that */
	uint64_t stack_pointer;
	uint32_t stack; /* the number of the innermost frame; 0: not known, or it has none */
	uint32_t event, function;
	int32_t tid;
	bool is_entry;
	bool is_span; /* of markers: it has no stack pointer */
	uint8_t faults;
	uint64_t values[KYMO_EVENT_MAX_ARGS];
	/* The bytes of the record, where its call's end needs them: of a return, or of an entry. Else NULL.
	 * kymo_open_calls_add() copies them. */
	const uint8_t *record;
	uint32_t record_size;
	uint32_t ring; /* that it was in */
};

#endif
