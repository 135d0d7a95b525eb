#include "report/parting.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"

static size_t common(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b)
{
	size_t n = 0;

	while (n < n_a && n < n_b && a[n] == b[n])
		n++;
	return n;
}

static uint64_t hash_run(const uint64_t *run, size_t size)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ run[i]) * UINT64_C(0x9e3779b97f4a7c15) + i;
	return hash ^ hash >> 29;
}

static bool are_equal_runs(const uint64_t *a, const uint64_t *b, size_t size)
{
	return !memcmp(a, b, size * sizeof(*a));
}

/* The first run of that size in `a` that is in `b`, too, and where it is first there. */
static bool find_run(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b, size_t size, struct parting *ret)
{
	struct kymo_index index = { .size = 0 };
	bool is_found = false;

	for (size_t i = 0; i + size <= n_b; i++) {
		const uint64_t hash = hash_run(b + i, size);

		/* Numbers are indices + 1, each of which is in the index or equal to one that is. */
		if (kymo_index_find(&index, hash, k, are_equal_runs(b + k - 1, b + i, size)))
			continue;
		if (2 * (i + 1) > index.size) {
			struct kymo_index grown;

			if (!kymo_index_grow_(&index, &grown))
				break;
			for (size_t s = 0; s < index.size; s++)
				if (index.slots[s])
					kymo_index_put(&grown, hash_run(b + index.slots[s] - 1, size), index.slots[s]);
			kymo_index_deinit(&index);
			index = grown;
		}
		kymo_index_put(&index, hash, i + 1);
	}
	for (size_t i = 0; i + size <= n_a && !is_found; i++) {
		const uint32_t at =
			kymo_index_find(&index, hash_run(a + i, size), k, are_equal_runs(b + k - 1, a + i, size));

		if (at)
			*ret = (struct parting){ .a = i, .b = at - 1 };
		is_found = at;
	}
	kymo_index_deinit(&index);
	return is_found;
}

bool kymo_part(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b, bool are_whole, struct parting *ret)
{
	static const size_t sizes[] = { 64, 16, 4, 1 };
	struct parting parting = { 0, 0, 0 };
	bool is_found = are_whole;

	for (size_t i = 0; i < kymo_countof(sizes) && !is_found; i++)
		is_found = find_run(a, n_a, b, n_b, sizes[i], &parting);
	if (!is_found)
		return false;
	parting.n = common(a + parting.a, n_a - parting.a, b + parting.b, n_b - parting.b);
	*ret = parting;
	return true;
}
