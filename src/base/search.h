/*
 * Searching what is in order by halving, where bsearch(3) does not do: for the first that is not below, whether there
 * is an equal one or not.
 *
 *	size_t at = kymo_partition_point(i, vec.n, vec.items[i].address < address);
 */
#ifndef KYMO_BASE_SEARCH_H
#define KYMO_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/*
 * How many of the indices below `n` are in front. `is_in_front` is an expression of the index `i`, a name that the
 * caller chooses; it is true for all up to somewhere, and false from there on, and looked at some log2(n) times. So
 * this is the index of the first one that is not in front, `n` where all are.
 */
#define kymo_partition_point(i, n, is_in_front) \
	__extension__({ \
		size_t low_ = 0, high_ = (n); \
		while (low_ < high_) { \
			const size_t i = low_ + (high_ - low_) / 2; \
			if (is_in_front) \
				low_ = i + 1; \
			else \
				high_ = i; \
		} \
		low_; \
	})

/* The order of two uint64_t, for qsort(3) and bsearch(3). */
static inline int kymo_compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

#endif
