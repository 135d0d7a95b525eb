/* Packets of plain records made out of packed ones, and the other way (wire/event.h). */
#ifndef KYMO_TRACE_PACKED_H
#define KYMO_TRACE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_ctf_event;
struct kymo_trace;

/* Bytes of plain records that `size` bytes of packed ones are at the most. */
static inline uint64_t kymo_packed_plain_max(uint64_t size)
{
	return 3 * size + 16;
}

/*
 * Whether a record of the thread is done with: it is left out then. `body` is what comes after its header, whole, in
 * the ring: so a second read of a byte may give another value.
 */
typedef bool kymo_packed_take(void *data, const struct kymo_ctf_event *event, int32_t tid, const uint8_t *body);

/*
 * Write the records of a ring as plain ones to `to`, where there is room for kymo_packed_plain_max(). They are `size`
 * bytes, and their packet begins at the stamp `begin`. Stacks stay copies. Returns the size of the plain ones. A target
 * may change the ring's bytes meanwhile. What is no record of the trace, and all bytes after it, stay as they are. The
 * header before them is of KYMO_EVENT_ID_MAX, an event that no trace has: so readers tell how many bytes they leave
 * out. `take` is asked first, with `data`; NULL: all are written.
 */
uint64_t kymo_packed_to_plain(const struct kymo_trace *output, const uint8_t *records, uint64_t size, uint64_t begin,
			      kymo_packed_take *take, void *data, uint8_t *to);

/* The other way: as a trace has them. `ret` is the caller's to free; `n_ret` is how many records were made. */
struct kymo_error *kymo_packed_from_plain(const struct kymo_trace *output, const uint8_t *records, uint64_t size,
					  uint64_t begin, uint8_t **ret, uint64_t *size_ret, uint64_t *n_ret);

/* How many events the first of the records are; `at_ret` is where they end. At the most `max` are looked at. */
uint64_t kymo_packed_count(const struct kymo_trace *output, const uint8_t *records, uint64_t size, uint64_t max,
			   uint64_t *at_ret);

#endif
