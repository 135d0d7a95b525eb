/*
 * The ring of samples of system calls: memory that BPF programs write and kymo has mapped, the only element of an
 * array. One for all CPUs, so what is taken out of it is in the order in which it was put in. The kernel's own ring
 * buffer has the same, for two calls of its functions and a lock a sample; this one takes one atomic addition.
 *
 * A producer (src/kernel/call_ring.bpf.h), with preemption off:
 *
 *	1. tail, then head: if there are more than `capacity` between them, `lost` + 1, and that is all; so, too, if
 *	   another one of its CPU is between 2 and 5
 *	2. begun, of its CPU = head, as it was seen in 1
 *	3. position = head, head += stride, at once
 *	4. writes the record at the position
 *	5. begun = CALL_RING_IDLE
 *
 * The reader takes what lies below the head, and below all that CPUs have begun. A record below the head that it reads
 * has done 3, so 2 is seen: either `begun` holds it back, or it is whole. Producers are ordered by x86: stores are seen
 * in their order, and 3 is a barrier. Between 1 and 3 each other CPU may take room, a record each: `capacity` leaves
 * that out. Records are in one piece: one that begins in front of the end goes on after it, where there are
 * CALL_RING_RECORD_MAX bytes more. A record begins with its size, 32 bits.
 *
 * A ring that is overwritten (a flight recorder's) has no room to wait for: the oldest go, whatever the reader does. It
 * has CALL_RING_SECTIONS sections, none smaller than a record, and `firsts` says for each where the first record begins
 * in it:
 *
 *	1a. no room: p = `firsts` of the section behind that of the tail. If it is of an earlier round, or some
 *		`begun` is below p: `lost` + 1, and that is all. Else tail = p, if it still is what was looked at; and
 *		once more from 1, twice at most
 *	3a. where position + stride is in the next section: its `firsts` = that
 *
 * No CPU writes below p then: a CPU that has taken room there did so before the head passed p, so its `begun` is seen,
 * or it is done. `firsts` is stored within 2 and 5: where it is late, so is that `begun`. A CPU that a hypervisor takes
 * away between 2 and 5 thus costs the newest, once all else is full; nothing is written over his record, nor his over
 * another. The reader copies a record, and looks at the tail again: if that is not past the record, the copy is whole.
 *
 * Only kymo has the map: what a target chooses is within records.
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_RING_H
#define KYMO_KERNEL_CALL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/call_layout.h"

#define CALL_RING_RECORD_MAX_LEAST \
	4096 /* where maps are small, and CPUs many: larger records are lost, and counted \
	      */

/* What programs are made of. */
struct call_ring_shape {
	int fd;
	uint32_t n_lines; /* a power of two, not below the number of CPUs */
	uint32_t size;    /* likewise */
	uint32_t capacity;
	uint32_t record_max;
	bool overwrite;
};

struct call_ring {
	struct call_ring_shape shape;
	void *memory;
	size_t memory_size;
	uint64_t read; /* the tail, as far as it is not told */
};

/* Of at least `wanted` bytes, if the kernel has maps of that size. On errors nothing is left; `ring` can be
 * deinitialized. */
struct kymo_error *call_ring_init(struct call_ring *ring, uint64_t wanted, uint32_t n_cpus, bool overwrite);
void call_ring_deinit(struct call_ring *ring);

struct call_ring_head *call_ring_head(const struct call_ring *ring);

/* Where what is complete ends, now; and whether that is the head: no CPU is writing. */
uint64_t call_ring_limit(const struct call_ring *ring, bool *is_head_ret);

/* The oldest record below `limit`; NULL: there is none. It stays until call_ring_next(). */
const void *call_ring_peek(const struct call_ring *ring, uint64_t limit);

/* The same of a ring that is overwritten: copied to `room`, of CALL_RING_RECORD_MAX bytes. `*has_gap_ret`: records in
 * front of it were overwritten. */
const void *call_ring_copy(struct call_ring *ring, uint64_t limit, void *room, bool *has_gap_ret);

/* Past that one; producers are told now and then. */
void call_ring_next(struct call_ring *ring, uint32_t stride);

/* Producers have all the room of what was taken out. */
void call_ring_tell(struct call_ring *ring);

#endif
