/*
 * The newest packets of a flight recorder, in memory: those of all streams, in the order in which they were read.
 *
 * One thread. The memory is one circle of fixed size: a packet that has no room takes that of the oldest ones.
 */
#ifndef KYMO_TRACE_KEPT_H
#define KYMO_TRACE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a stream needs of a packet: the arguments of kymo_ctf_stream_append(), and how many events it has, about. */
struct kymo_kept_packet {
	size_t stream;
	uint64_t begin, end;     /* stamps */
	uint64_t lost, sequence; /* running totals of the stream */
	uint64_t events;
	uint64_t size; /* of the records, in bytes */
};

struct kymo_kept;

/* Memory for `size` bytes of packets; it takes pages as they are used. NO_MEMORY. */
struct kymo_error *kymo_kept_create(uint64_t size, struct kymo_kept **ret);
void kymo_kept_destroy(struct kymo_kept *kept); /* NULL is allowed */

/*
 * Keep a copy of a packet, in place of as many of the oldest as it takes. False: it is larger than all of the memory;
 * nothing has changed. `dropped` is called for each packet that goes, before it goes.
 */
bool kymo_kept_push(struct kymo_kept *kept, const struct kymo_kept_packet *packet, const void *records,
		    void (*dropped)(const struct kymo_kept_packet *packet, void *data), void *data);

/* The oldest packet, and the one after `packet`; NULL: there is none. They stay until the next kymo_kept_push(). */
const struct kymo_kept_packet *kymo_kept_first(const struct kymo_kept *kept);
const struct kymo_kept_packet *kymo_kept_next(const struct kymo_kept *kept, const struct kymo_kept_packet *packet);

/* The records of a packet. */
const void *kymo_kept_records(const struct kymo_kept_packet *packet);

/* The same to be changed in place. */
void *kymo_kept_records_writable(struct kymo_kept *kept, const struct kymo_kept_packet *packet);

#endif
