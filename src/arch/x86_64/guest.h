/* The image of guest.c, to be copied to the start of a pad region. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GUEST_H
#define KYMO_ARCH_X86_64_GUEST_H

#include <stdint.h>

/* What `change` gives besides 0 (the record was lost, and counted). */
#define KYMO_GUEST_AGAIN 1  /* there is room: run the sequence again */
#define KYMO_GUEST_LOCKED 2 /* another thread is changing the sub-buffer: use a ring with a lock */

/*
 * The same as C functions, for producers that are not pads but linked with it (lib/marker). They use general registers
 * only, call nothing and never wait. `geometry` is in memory that no other process can write.
 *
 *	take	a ring whose lock is free, locked; NULL: all are taken, a loss is counted
 *	switch	the lock is held: open the next sub-buffer; NULL: there is none, the loss is counted, and the lock is
 *		released
 *	change	a sequence of the thread whose struct rseq is `area` found no room: KYMO_GUEST_…, or 0
 */
struct kymo_wire_ring;
struct kymo_pad_rings;
struct kymo_wire_vforks;
struct kymo_wire_ring *kymo_guest_take(char *rings, uint32_t n);
struct kymo_wire_ring *kymo_guest_switch(struct kymo_wire_ring *ring, char *unused,
					 const struct kymo_pad_rings *geometry);
uint64_t kymo_guest_change(struct kymo_wire_ring *ring, char *area, const struct kymo_pad_rings *geometry);

/* Not 0: the thread is in a child of vfork(). */
uint64_t kymo_guest_is_vfork_child(const struct kymo_wire_vforks *vforks);

/* The bytes of a string that are wanted, up to `limit` + 1, and the limit, as pads hand them over in one register. */
#define KYMO_GUEST_STRING(limit, wanted) ((uint32_t)(limit) << 16 | (uint32_t)(wanted))

struct kymo_guest_image {
	const uint8_t *bytes;
	uint32_t size;
	/* offsets of the entries */
	uint32_t take, switch_, change, vfork, read, string, block, list, write, ask, strike;
};

void kymo_guest_image(struct kymo_guest_image *ret);

#endif
