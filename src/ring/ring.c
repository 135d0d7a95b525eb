#include "ring/ring.h"

#include <string.h>

void kymo_ring_init(struct kymo_ring *ring, struct kymo_wire_ring *shared, const uint8_t *data, uint64_t subbuffer_size,
		    uint32_t n_subbuffers, bool overwrite)
{
	*ring = (struct kymo_ring){
		.shared = shared,
		.data = data,
		.subbuffer_size = subbuffer_size,
		.n_subbuffers = n_subbuffers,
		.overwrite = overwrite,
	};
}

bool kymo_ring_peek(struct kymo_ring *ring, struct kymo_ring_packet *ret)
{
	/* Acquire pairs with the release of `closed` by producers: the sub-buffer's entry and records come before. */
	uint64_t closed = __atomic_load_n(&ring->shared->closed, __ATOMIC_ACQUIRE);
	const struct kymo_wire_subbuffer *sub;
	uint64_t size;
	uint32_t k;

	if (closed == ring->consumed)
		return false;
	if (ring->overwrite && closed - ring->consumed > ring->n_subbuffers)
		ring->consumed = closed - ring->n_subbuffers;
	if (closed - ring->consumed > ring->n_subbuffers)
		return false; /* no producer of ours does this */
	k = (uint32_t)(ring->consumed % ring->n_subbuffers);
	sub = &ring->shared->subbuffers[k];
	size = __atomic_load_n(&sub->size, __ATOMIC_RELAXED);
	if (size > ring->subbuffer_size)
		size = 0;
	*ret = (struct kymo_ring_packet){
		.records = ring->data + k * ring->subbuffer_size,
		.size = size,
		.tsc_begin = __atomic_load_n(&sub->tsc_begin, __ATOMIC_RELAXED),
		.tsc_end = __atomic_load_n(&sub->tsc_end, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&sub->lost, __ATOMIC_RELAXED),
		.sequence = ring->consumed,
	};
	return true;
}

/* A producer that opens a packet has written into its entry before `opened` says so: what is read counts only as long
 * as the packet that takes its place is not the very next one. */
bool kymo_ring_copy(struct kymo_ring *ring, uint8_t *room, struct kymo_ring_packet *ret)
{
	for (uint32_t i = 0; i <= ring->n_subbuffers; i++) {
		struct kymo_ring_packet packet;

		if (!kymo_ring_peek(ring, &packet))
			return false;
		ring->consumed = packet.sequence + 1;
		memcpy(room, packet.records, packet.size);
		/* Adding nothing keeps the copy before it, as a fence would, which ThreadSanitizer does not know. */
		if (__atomic_fetch_add(&ring->shared->opened, 0, __ATOMIC_ACQ_REL) - packet.sequence >=
		    ring->n_subbuffers)
			continue;
		packet.records = room;
		*ret = packet;
		return true;
	}
	return false;
}

void kymo_ring_release(struct kymo_ring *ring)
{
	/* Release pairs with the acquire in kymo_guest_switch(): the copy is made before the room is given back. */
	__atomic_store_n(&ring->shared->consumed, ++ring->consumed, __ATOMIC_RELEASE);
}

/* What kymo_guest_switch() does to close a packet. The lock is held, or its owner has died. */
static void close_packet(struct kymo_ring *ring, uint64_t tsc)
{
	struct kymo_wire_ring *shared = ring->shared;
	uint64_t opened = __atomic_load_n(&shared->opened, __ATOMIC_RELAXED), start;
	uint64_t cur = __atomic_load_n(&shared->cur, __ATOMIC_RELAXED),
		 last = __atomic_load_n(&shared->last_tsc, __ATOMIC_RELAXED);
	struct kymo_wire_subbuffer *sub;
	uint32_t k;

	if (!shared->is_open || !opened || shared->closed != opened - 1)
		return;
	k = (uint32_t)((opened - 1) % ring->n_subbuffers);
	start = (uint64_t)(ring->data - (const uint8_t *)shared) + k * ring->subbuffer_size;
	if (cur < start || cur - start > ring->subbuffer_size)
		return;
	sub = &shared->subbuffers[k];
	if (tsc < last)
		tsc = last;
	sub->size = cur - start;
	sub->tsc_end = tsc;
	shared->last_tsc = tsc;
	sub->lost = __atomic_load_n(&shared->lost, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->closed, opened, __ATOMIC_RELEASE);
	shared->is_open = 0;
	shared->end = 0;
}

static bool has_records(const struct kymo_ring *ring)
{
	const struct kymo_wire_ring *shared = ring->shared;
	uint64_t opened = __atomic_load_n(&shared->opened, __ATOMIC_RELAXED);
	uint64_t start = (uint64_t)(ring->data - (const uint8_t *)shared) +
			 (opened ? (opened - 1) % ring->n_subbuffers : 0) * ring->subbuffer_size;

	return shared->is_open && __atomic_load_n(&shared->cur, __ATOMIC_RELAXED) != start;
}

bool kymo_ring_flush(struct kymo_ring *ring, uint64_t tsc)
{
	if (!has_records(ring))
		return true;
	if (__atomic_load_n(&ring->shared->lock, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&ring->shared->lock, 1, __ATOMIC_ACQUIRE))
		return false;
	if (ring->close)
		tsc = ring->close(ring->shared, ring->cpu);
	if (tsc)
		close_packet(ring, tsc);
	__atomic_store_n(&ring->shared->lock, 0, __ATOMIC_RELEASE);
	return tsc != 0;
}

void kymo_ring_finish(struct kymo_ring *ring, uint64_t tsc)
{
	close_packet(ring, tsc);
}

bool kymo_ring_is_idle(const struct kymo_ring *ring)
{
	return __atomic_load_n(&ring->shared->closed, __ATOMIC_ACQUIRE) == ring->consumed && !has_records(ring) &&
	       !__atomic_load_n(&ring->shared->lock, __ATOMIC_RELAXED);
}

uint64_t kymo_ring_lost(const struct kymo_ring *ring)
{
	return __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED);
}
