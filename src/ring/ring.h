/*
 * The recorder's side of a ring (wire/shared.h). The producers' side is generated code.
 *
 * The memory is shared with a target that may write anything at any time. So the reader keeps the geometry itself,
 * checks every value before use, and passes record bytes on without looking at them. No function allocates memory; a
 * ring is used from one thread.
 */
#ifndef KYMO_RING_RING_H
#define KYMO_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shared.h"

struct kymo_ring {
	struct kymo_wire_ring *shared;
	const uint8_t *data; /* sub-buffer 0 */
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	bool overwrite;
	uint64_t consumed;
	/* Set by the owner if producers don't use the lock. It makes them leave the ring alone, so that its packet can
	 * be closed, and returns a stamp taken after that; 0 if it cannot. */
	uint64_t (*close)(struct kymo_wire_ring *shared, uint32_t cpu);
	uint32_t cpu;
};

/* A complete packet's records. `records` points into the ring: good until kymo_ring_release(). */
struct kymo_ring_packet {
	const uint8_t *records;
	uint64_t size;
	uint64_t tsc_begin, tsc_end;
	uint64_t lost; /* running total of the ring when the packet was closed */
	uint64_t sequence;
	bool is_plain; /* its records are made by the recorder, which packs them where its trace has packed ones */
};

/* Begin to read a ring of this geometry. */
void kymo_ring_init(struct kymo_ring *ring, struct kymo_wire_ring *shared, const uint8_t *data, uint64_t subbuffer_size,
		    uint32_t n_subbuffers, bool overwrite);

/* The oldest complete packet that was not released. False: there is none, or the ring's words are invalid. In overwrite
 * mode only after kymo_ring_finish(). */
bool kymo_ring_peek(struct kymo_ring *ring, struct kymo_ring_packet *ret);

/*
 * The same for a ring that is being overwritten: copy the next complete packet to `room`, of `subbuffer_size` bytes.
 * The oldest packet of a full ring is left out, as a producer may be about to overwrite it. `ring` is a copy of the
 * reader's own, whose `consumed` goes on.
 */
bool kymo_ring_copy(struct kymo_ring *ring, uint8_t *room, struct kymo_ring_packet *ret);

/* Give the packet of the last peek back to the producers. */
void kymo_ring_release(struct kymo_ring *ring);

/*
 * Close the packet that is being filled, if it has records and no producer is at work. Producers go on in the next
 * packet. Called now and then, so that records of a quiet program reach the disk, and that no two stamps of a packet
 * are hours apart. False: the packet stays open, as a producer is at work; a later call may close it.
 */
bool kymo_ring_flush(struct kymo_ring *ring, uint64_t tsc);

/* The same when no producer can be running any more; a lock left behind by a thread that died is no obstacle. */
void kymo_ring_finish(struct kymo_ring *ring, uint64_t tsc);

/* Whether there is nothing to come: no packet is complete or has records, and no producer is at work. What a producer
 * stamped a moment ago may still come. */
bool kymo_ring_is_idle(const struct kymo_ring *ring);

/* Events lost so far, and bytes written so far (both for display: read without a lock). */
uint64_t kymo_ring_lost(const struct kymo_ring *ring);

#endif
