#include "report/loops.h"

/* How often the `length` branches at `at` follow each other. */
static size_t repeats(const uint64_t *branches, size_t n, size_t at, size_t length)
{
	size_t end = at + length;

	while (end < n && branches[end] == branches[end - length])
		end++;
	return (end - at) / length;
}

/* What leaves the fewest lines; of those the shortest. */
static struct loop best_at(const uint64_t *branches, size_t n, size_t at)
{
	struct loop best = { at, 1, 1 };

	for (size_t length = 1; length <= LOOP_MAX && at + 2 * length <= n; length++) {
		const size_t count = repeats(branches, n, at, length);

		if ((count - 1) * length > (best.count - 1) * best.length)
			best = (struct loop){ at, length, count };
	}
	return best;
}

bool kymo_loops_find(const uint64_t *branches, size_t n, struct loops *ret)
{
	for (size_t at = 0; at < n;) {
		const struct loop loop = best_at(branches, n, at);

		if (!kymo_vec_push(&ret->items, loop))
			return false;
		at += loop.length * loop.count;
	}
	return true;
}
