#include "branch/ring.h"

#include <stdlib.h>
#include <string.h>

#include "branch/branch.h"

#define CAPACITY_MIN 64u

/* While it grows it is not full, and so it begins at its first item. */
static void grow(struct branch_ring *ring, size_t room)
{
	size_t capacity = ring->capacity ? 2 * ring->capacity : CAPACITY_MIN;
	struct kymo_branch *items = NULL;

	if (capacity > ring->max)
		capacity = ring->max;
	if (capacity - ring->capacity <= room)
		items = reallocarray(ring->items, capacity, sizeof(*items));
	if (items) {
		ring->items = items;
		ring->capacity = capacity;
	} else {
		ring->max = ring->capacity; /* its items stay where they are from now on */
	}
}

void branch_ring_add(struct branch_ring *ring, const struct kymo_branch *branch, size_t room)
{
	if (ring->n == ring->capacity && ring->capacity < ring->max)
		grow(ring, room);
	if (ring->capacity)
		ring->items[ring->n % ring->capacity] = *branch;
	ring->n++;
}

void branch_ring_deinit(struct branch_ring *ring)
{
	free(ring->items);
	ring->items = NULL;
	ring->capacity = ring->max = 0;
}

size_t branch_ring_kept(const struct branch_ring *ring)
{
	return ring->n < ring->capacity ? (size_t)ring->n : ring->capacity;
}

const struct kymo_branch *branch_ring_at(const struct branch_ring *ring, size_t i)
{
	return &ring->items[(ring->n - branch_ring_kept(ring) + i) % ring->capacity];
}
