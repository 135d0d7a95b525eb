/* The newest branches of a thread. Private to the room. */
#ifndef KYMO_BRANCH_RING_H
#define KYMO_BRANCH_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_branch;

/* Zeroed but for `max`: empty. */
struct branch_ring {
	struct kymo_branch *items;
	size_t capacity, max; /* branches; it grows up to `max` */
	uint64_t n;           /* that were added; the newest of them are there */
};

/* It may grow by `room` branches. Where that is not enough, or memory is out, it stays as large as it is from then on:
 * `max` says so. */
void branch_ring_add(struct branch_ring *ring, const struct kymo_branch *branch, size_t room);
void branch_ring_deinit(struct branch_ring *ring);

/* How many are there; and one of them, 0 the oldest. */
size_t branch_ring_kept(const struct branch_ring *ring);
const struct kymo_branch *branch_ring_at(const struct branch_ring *ring, size_t i);

#endif
