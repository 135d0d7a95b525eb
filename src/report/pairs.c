#include "report/pairs.h"

#include <stdlib.h>

void kymo_pairs_deinit(struct pairs *pairs)
{
	free(pairs->items);
	*pairs = (struct pairs){ 0 };
}

static struct pair *find_slot(const struct pairs *pairs, uint32_t thread, uint32_t probe)
{
	const uint64_t hash = (((uint64_t)thread << 32 | probe) + 1) * 0x9e3779b97f4a7c15u;
	size_t slot = (size_t)(hash >> 32) & (pairs->size - 1);

	while (pairs->items[slot].count && (pairs->items[slot].thread != thread || pairs->items[slot].probe != probe))
		slot = (slot + 1) & (pairs->size - 1);
	return &pairs->items[slot];
}

static bool grow_pairs(struct pairs *pairs)
{
	const size_t size = pairs->size ? pairs->size * 2 : 256;
	struct pairs grown = { .items = calloc(size, sizeof(*grown.items)), .size = size, .n = pairs->n };

	if (!grown.items)
		return false;
	for (size_t i = 0; i < pairs->size; i++)
		if (pairs->items[i].count)
			*find_slot(&grown, pairs->items[i].thread, pairs->items[i].probe) = pairs->items[i];
	free(pairs->items);
	*pairs = grown;
	return true;
}

bool kymo_pairs_add(struct pairs *pairs, size_t thread, size_t probe, bool is_recent)
{
	struct pair *pair;

	if (pairs->n * 2 >= pairs->size && !grow_pairs(pairs))
		return false;
	pair = find_slot(pairs, (uint32_t)thread, (uint32_t)probe);
	pairs->n += !pair->count;
	*pair = (struct pair){ (uint32_t)thread, (uint32_t)probe, pair->count + 1, pair->recent + is_recent };
	return true;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->probe < y->probe ? -1 : x->probe > y->probe;
}

struct pair *kymo_pairs_sorted(const struct pairs *pairs)
{
	struct pair *sorted = calloc(pairs->n + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < pairs->size; i++)
		if (pairs->items[i].count)
			sorted[n++] = pairs->items[i];
	qsort(sorted, n, sizeof(*sorted), compare_pairs);
	return sorted;
}

const struct pair *kymo_pairs_of(const struct pair *sorted, size_t n, size_t thread, size_t *n_ret)
{
	size_t low = 0, high = n, end;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (sorted[middle].thread < thread)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < n && sorted[end].thread == thread; end++)
		;
	*n_ret = end - low;
	return &sorted[low];
}
