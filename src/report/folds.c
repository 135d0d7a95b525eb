#include "report/folds.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

bool kymo_folds_init(struct folds *folds)
{
	*folds = (struct folds){ 0 };
	return kymo_vec_push(&folds->items, (struct fold){ .name = 0 });
}

void kymo_folds_deinit(struct folds *folds)
{
	kymo_vec_deinit(&folds->items);
	kymo_index_deinit(&folds->index);
	kymo_strings_deinit(&folds->names);
}

static uint64_t hash_fold(const struct fold *fold)
{
	return kymo_hash_pair(fold->parent, fold->name);
}

uint32_t kymo_folds_find(struct folds *folds, uint32_t parent, const char *name)
{
	const struct fold fold = {
		.parent = parent,
		.name = kymo_strings_number(&folds->names, name),
		.depth = folds->items.items[parent].depth + 1,
	};
	const struct fold *items = folds->items.items;
	const size_t n = folds->items.n - 1; /* the root is not in the index */
	const uint32_t known = kymo_index_find(&folds->index, hash_fold(&fold), i,
					       items[i].parent == fold.parent && items[i].name == fold.name);

	if (known)
		return known;
	if (n + 1 == UINT32_MAX || !kymo_index_reserve(&folds->index, n, i, hash_fold(&items[i])) ||
	    !kymo_vec_push(&folds->items, fold))
		return 0;
	kymo_index_put(&folds->index, hash_fold(&fold), n + 1);
	return (uint32_t)n + 1;
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

static int compare_folds(const void *a, const void *b, void *data)
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
		qsort_r(sorted, n, sizeof(*sorted), compare_folds, &order);
	return sorted;
}
