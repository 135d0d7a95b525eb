/*
 * From the blocks that function clones record to the branches that were taken. Pure. Private to the room.
 *
 * A thread's entries are numbers of sites. Within a function the next entry tells which branch was taken, and there is
 * no other way (arch/clone.h). Between functions a branch is told where it is certain: a direct call or jump to the
 * block that comes next, and the return from a function that was called so. Everything else that lies between two
 * blocks is code that is not cloned: then the next block is entered, and from where is not known.
 */
#ifndef KYMO_BRANCH_BLOCKS_H
#define KYMO_BRANCH_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_branch;
struct kymo_clone;

struct branch_function {
	const struct kymo_clone *clone;
	uint64_t bias;
	uint32_t first_site; /* its number; the functions are sorted by that */
};

/* A branch, with addresses, kind, and neither time nor space; or an anchor, with the time stamp of its record alone.
 * `is_gap`: it enters a block that can't follow the one before; some entries are missing, or the target has written
 * others. */
typedef void branch_is_taken(const struct kymo_branch *branch, bool is_gap, void *data);

/* What a thread did, by its entries, oldest first. `at` is where it was ended by a signal, or NULL: if that is in
 * another function than the last entry, it tells that the call of that was made. 0 or -ENOMEM. */
int branch_follow(const struct branch_function *functions, size_t n, const uint32_t *entries, size_t n_entries,
		  const uint64_t *at, branch_is_taken *is_taken, void *data);

/* Which entries of a ring of `size` were written last, one after the other: they end at `end`, and go on at the ring's
 * beginning if there are more than that. `position` is the thread's, as an entry's index, or -1 where the thread's
 * memory is gone: then entries of 0 tell. */
struct branch_ring_entries {
	size_t end, n;
	bool is_full; /* all of the ring was written: what came before was overwritten */
};

struct branch_ring_entries branch_find_entries(const uint32_t *ring, size_t size, ptrdiff_t position);

#endif
