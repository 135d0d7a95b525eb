#include "report/folds.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *find_slot(const struct folds *folds, uint32_t parent, uint32_t name)
{
	const uint64_t hash = (((uint64_t)parent << 32 | name) + 1) * UINT64_C(0x9e3779b97f4a7c15);
	size_t slot = (size_t)(hash >> 40) & (folds->index_size - 1);

	for (; folds->index[slot]; slot = (slot + 1) & (folds->index_size - 1)) {
		const struct fold *fold = &folds->items.items[folds->index[slot]];

		if (fold->parent == parent && fold->name == name)
			break;
	}
	return &folds->index[slot];
}

static bool grow(struct folds *folds)
{
	const size_t size = folds->index_size ? 2 * folds->index_size : 256;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return false;
	free(folds->index);
	folds->index = index;
	folds->index_size = size;
	for (uint32_t i = 1; i < folds->items.n; i++)
		*find_slot(folds, folds->items.items[i].parent, folds->items.items[i].name) = i;
	return true;
}

bool kymo_folds_init(struct folds *folds)
{
	*folds = (struct folds){ .index = NULL };
	return kymo_vec_push(&folds->items, (struct fold){ .name = 0 }) && grow(folds);
}

void kymo_folds_deinit(struct folds *folds)
{
	kymo_vec_deinit(&folds->items);
	free(folds->index);
	kymo_strings_deinit(&folds->names);
	folds->index = NULL;
}

uint32_t kymo_folds_find(struct folds *folds, uint32_t parent, const char *name)
{
	const uint32_t number = kymo_strings_number(&folds->names, name);
	const uint32_t depth = folds->items.items[parent].depth + 1;
	uint32_t *slot;

	if (2 * (folds->items.n + 1) > folds->index_size && !grow(folds))
		return 0;
	slot = find_slot(folds, parent, number);
	if (*slot)
		return *slot;
	if (folds->items.n == UINT32_MAX ||
	    !kymo_vec_push(&folds->items, (struct fold){ .parent = parent, .name = number, .depth = depth }))
		return 0;
	*slot = (uint32_t)folds->items.n - 1;
	return *slot;
}

const char *kymo_folds_name(const struct folds *folds, uint32_t at)
{
	return kymo_strings_text(&folds->names, folds->items.items[at].name);
}

void kymo_folds_sum(struct folds *folds)
{
	for (size_t i = 0; i < folds->items.n; i++)
		folds->items.items[i].total = folds->items.items[i].self;
	for (size_t i = folds->items.n; i-- > 1;)
		folds->items.items[folds->items.items[i].parent].total += folds->items.items[i].total;
}

struct order {
	const struct folds *folds;
	bool by_total;
};

static int compare(const void *a, const void *b, void *data)
{
	const struct order *order = data;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct fold *x = &order->folds->items.items[i], *y = &order->folds->items.items[k];

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (order->by_total && x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(kymo_folds_name(order->folds, i), kymo_folds_name(order->folds, k));
}

uint32_t *kymo_folds_sorted(const struct folds *folds, bool by_total)
{
	const size_t n = folds->items.n - 1;
	uint32_t *sorted = reallocarray(NULL, n + 1, sizeof(*sorted));
	struct order order = { folds, by_total };

	for (uint32_t i = 0; sorted && i < n; i++)
		sorted[i] = i + 1;
	if (sorted)
		qsort_r(sorted, n, sizeof(*sorted), compare, &order);
	return sorted;
}
