/*
 * Addresses for trampolines: which are free, which are taken. Trampolines share pages where they can, because each
 * stretch of pages is a mapping, of which a process may have 65,530. Pure. Private to the room.
 */
#ifndef KYMO_PROBE_PLAN_POOL_H
#define KYMO_PROBE_PLAN_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Addresses at which nothing is mapped: [low, high), whole pages. */
struct pool_hole {
	uint64_t low, high;
};

struct pool_page;

struct probe_pool {
	KYMO_VEC(struct pool_hole) holes;   /* sorted, not touching each other */
	KYMO_VEC(struct pool_page *) pages; /* with trampolines; sorted by address */
};

void probe_pool_deinit(struct probe_pool *pool);

/* Add a hole; holes come in the order of addresses. False when memory is out. */
bool probe_pool_add_hole(struct probe_pool *pool, uint64_t low, uint64_t high);

/* Take `size` (at most 64) free bytes that begin in [low, high], a range that may wrap around 0: their address, or 0.
 * Pages in use are preferred. */
uint64_t probe_pool_reserve(struct probe_pool *pool, uint64_t low, uint64_t high, size_t size);

/* Give them back. */
void probe_pool_release(struct probe_pool *pool, uint64_t address, size_t size);

/* Forget the empty pages. Return how many stretches of pages are left when those at most `gap` pages apart (with
 * nothing mapped between) are taken for one. `ret` (space for that many; NULL to count) gets them. */
size_t probe_pool_stretches(struct probe_pool *pool, uint64_t gap, struct pool_hole *ret);

#endif
