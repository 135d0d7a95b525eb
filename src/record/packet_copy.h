/* Packets whose records are looked at, and changed, before they are written. Private to the room. */
#ifndef KYMO_RECORD_PACKET_COPY_H
#define KYMO_RECORD_PACKET_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/packed.h"

struct kymo_ctf_event;
struct kymo_ring_packet;
struct kymo_trace;

/* This process's own copy of one packet's records: a target may change the ring's at any time. */
struct packet_copy {
	uint8_t *records; /* NULL: no packet had any yet */
	size_t size;      /* bytes allocated */
};

/* Copy the records of `packet`, as a ring has them, to `copy`, of which it is then: as plain ones. Those that `take` is
 * done with are left out; it is called with `data`, and may be NULL. */
struct kymo_error *packet_copy_take(struct packet_copy *copy, const struct kymo_trace *output,
				    struct kymo_ring_packet *packet, kymo_packed_take *take, void *data);
void packet_copy_deinit(struct packet_copy *copy);

/* The event of the record that begins at `record`, with at least its header; NULL: the output has none of its id. */
const struct kymo_ctf_event *packet_event(const struct kymo_trace *output, const uint8_t *record);

#endif
