/* Rings, which pads write and the recorder reads. They lie in the data memory of shared.h. */
#ifndef KYMO_WIRE_RING_H
#define KYMO_WIRE_RING_H

#include <stddef.h>
#include <stdint.h>

#define KYMO_WIRE_MAX_SUBBUFFERS 16

/* What is known of one sub-buffer; written by the producer that opens and closes it. */
struct kymo_wire_subbuffer {
	uint64_t sequence; /* of the packet in it */
	uint64_t tsc_begin, tsc_end;
	uint64_t size; /* bytes of records, when closed */
	uint64_t lost; /* running total of the ring when closed */
};

/*
 * A ring of sub-buffers, with one producer at a time. Of some rings it is the thread that turned `lock` from 0 to 1
 * with an exchange. No thread waits for a lock: a producer that finds one taken (its holder was preempted, or is this
 * very thread below a signal handler) goes to another ring. The producers of the others are the restartable sequences
 * of one CPU; only a thread that changes the sub-buffer takes the lock, and sets `end` to 0 in a sequence first.
 *
 * Records are written at `cur` and count as soon as `cur` is moved after them, so a death in the middle leaves no hole.
 * Offsets are relative to the ring's own address.
 */
struct kymo_wire_ring {
	/* the line that each record touches */
	uint32_t lock;
	uint32_t is_open;  /* a packet is being filled */
	uint64_t cur;      /* where the next record goes */
	uint64_t end;      /* where the current sub-buffer ends; 0 when no packet is open */
	uint64_t last_tsc; /* stamps of one ring never go back */
	uint64_t lost;     /* events, running total; added to atomically, also without the lock */
	/* The last thread's record (event.h): its stamp, where it begins, its tid. It is there if `cur` is greater than
	 * `thread_at`: which is stored before the others, and is KYMO_WIRE_NO_THREAD when a packet is opened. */
	uint64_t thread_tsc, thread_at;
	int32_t thread;
	uint32_t unused;

	/* the recorder's line */
	uint64_t consumed __attribute__((aligned(64))); /* packets copied out */
	uint32_t n_subbuffers;
	uint32_t overwrite;
	uint64_t subbuffer_size;
	uint32_t cpu;          /* whose sequences are the producers */
	uint32_t is_sequenced; /* they are */
	uint64_t data_offset;

	/* the line of a change of the sub-buffer */
	uint64_t opened __attribute__((aligned(64))); /* packets opened; packet n lies in sub-buffer n % n_subbuffers */
	uint64_t closed;                              /* packets complete; stored after the packet's subbuffer entry */

	struct kymo_wire_subbuffer subbuffers[KYMO_WIRE_MAX_SUBBUFFERS] __attribute__((aligned(64)));
};

#define KYMO_WIRE_NO_THREAD UINT64_MAX

#define KYMO_WIRE_RING_STRIDE 1024
_Static_assert(sizeof(struct kymo_wire_ring) <= KYMO_WIRE_RING_STRIDE, "a ring's control block fits its stride");
_Static_assert(offsetof(struct kymo_wire_ring, consumed) == 64, "producers and recorder do not share a line");

#endif
