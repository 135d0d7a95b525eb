#include "aggr/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void kymo_aggr_table_init(struct kymo_aggr_table *table, const struct kymo_aggr *aggr, size_t rows_max)
{
	*table = (struct kymo_aggr_table){ .aggr = aggr, .rows_max = rows_max };
}

void kymo_aggr_table_clear(struct kymo_aggr_table *table)
{
	const struct kymo_aggr *aggr = table->aggr;
	const struct kymo_frame_tree *frames = table->frames;
	const size_t rows_max = table->rows_max;

	kymo_aggr_table_deinit(table);
	kymo_aggr_table_init(table, aggr, rows_max);
	table->frames = frames;
}

void kymo_aggr_table_deinit(struct kymo_aggr_table *table)
{
	for (size_t i = 0; i < table->rows.n; i++)
		free(table->rows.items[i].buckets);
	kymo_vec_deinit(&table->rows);
	kymo_index_deinit(&table->index);
	kymo_strings_deinit(&table->strings);
	*table = (struct kymo_aggr_table){ .aggr = table->aggr };
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t hash_keys(const struct kymo_aggr *aggr, const struct kymo_aggr_keys *keys)
{
	uint64_t hash = keys->faults;

	for (size_t i = 0; i < aggr->n_keys; i++)
		hash = kymo_hash_number(hash, keys->values[i]);
	return hash;
}

static bool are_equal(const struct kymo_aggr *aggr, const struct kymo_aggr_keys *a, const struct kymo_aggr_keys *b)
{
	bool are = a->faults == b->faults;

	for (size_t i = 0; i < aggr->n_keys; i++)
		are &= a->values[i] == b->values[i];
	return are;
}

static struct kymo_aggr_row *add_row(struct kymo_aggr_table *table, const struct kymo_aggr_keys *keys, uint64_t hash)
{
	const size_t n_buckets = kymo_aggr_n_buckets(table->aggr);
	struct kymo_aggr_row row = { .keys = *keys };

	if (table->rows.n >= table->rows_max ||
	    !kymo_index_reserve(&table->index, table->rows.n, i,
				hash_keys(table->aggr, &table->rows.items[i - 1].keys)))
		return NULL;
	if (n_buckets)
		row.buckets = calloc(n_buckets, sizeof(*row.buckets));
	if ((n_buckets && !row.buckets) || !kymo_vec_push(&table->rows, row)) {
		free(row.buckets);
		return NULL;
	}
	kymo_index_put(&table->index, hash, table->rows.n);
	return &table->rows.items[table->rows.n - 1];
}

struct kymo_aggr_row *kymo_aggr_row(struct kymo_aggr_table *table, const struct kymo_aggr_keys *keys)
{
	uint32_t known;
	uint64_t hash;

	if (keys->has_no_room)
		return NULL;
	hash = hash_keys(table->aggr, keys);
	known = kymo_index_find(&table->index, hash, i, are_equal(table->aggr, &table->rows.items[i - 1].keys, keys));
	return known ? &table->rows.items[known - 1] : add_row(table, keys, hash);
}

void kymo_aggr_set_text(struct kymo_aggr_table *table, struct kymo_aggr_keys *keys, size_t i, const char *text)
{
	keys->values[i] = kymo_strings_number(&table->strings, text);
	keys->has_no_room |= !keys->values[i];
}

/* ---- values ---------------------------------------------------------------------------------- */

size_t kymo_aggr_n_buckets(const struct kymo_aggr *aggr)
{
	if (aggr->kind == KYMO_AGGR_HIST)
		return KYMO_AGGR_BUCKETS;
	return aggr->kind == KYMO_AGGR_LHIST ? (size_t)((aggr->high - aggr->low) / aggr->step) + 2 : 0;
}

static size_t log2_of(uint64_t magnitude)
{
	return magnitude ? 64 - (size_t)__builtin_clzll(magnitude) : 0;
}

size_t kymo_aggr_bucket(const struct kymo_aggr *aggr, uint64_t value)
{
	const bool is_signed = kymo_aggr_is_signed(aggr), is_negative = is_signed && (int64_t)value < 0;

	if (aggr->kind == KYMO_AGGR_HIST)
		return is_negative ? KYMO_AGGR_ZERO - log2_of(0 - value) : KYMO_AGGR_ZERO + log2_of(value);
	if (!is_signed && value > INT64_MAX)
		return kymo_aggr_n_buckets(aggr) - 1;
	if ((int64_t)value < aggr->low)
		return 0;
	if ((int64_t)value >= aggr->high)
		return kymo_aggr_n_buckets(aggr) - 1;
	return (size_t)((value - (uint64_t)aggr->low) / (uint64_t)aggr->step) + 1;
}

void kymo_aggr_step(const struct kymo_aggr *aggr, size_t bucket, int64_t *low_ret, int64_t *high_ret)
{
	const size_t last = kymo_aggr_n_buckets(aggr) - 1;

	*low_ret = !bucket ? INT64_MIN : bucket == last ? aggr->high : aggr->low + (int64_t)(bucket - 1) * aggr->step;
	*high_ret = !bucket ? aggr->low - 1 : bucket == last ? INT64_MAX : *low_ret + aggr->step - 1;
}

static void add_value(const struct kymo_aggr *aggr, struct kymo_aggr_row *row, uint64_t value)
{
	const bool is_signed = kymo_aggr_is_signed(aggr);
	/* Signed values are compared as unsigned ones with the sign bit turned. */
	const uint64_t turn = (uint64_t)is_signed << 63;

	if (!row->count || (value ^ turn) < (row->min ^ turn))
		row->min = value;
	if (!row->count || (value ^ turn) > (row->max ^ turn))
		row->max = value;
	row->sum += is_signed ? (__int128)(int64_t)value : (__int128)value;
	if (row->buckets)
		row->buckets[kymo_aggr_bucket(aggr, value)]++;
}

void kymo_aggr_add(struct kymo_aggr_table *table, const struct kymo_aggr_keys *keys, uint64_t value)
{
	struct kymo_aggr_row *row = kymo_aggr_row(table, keys);

	if (!row) {
		table->lost++;
		return;
	}
	if (table->aggr->has_value)
		add_value(table->aggr, row, value);
	row->count++;
	table->hits++;
}

/* ---- in order -------------------------------------------------------------------------------- */

static __int128 wide(const struct kymo_aggr *aggr, uint64_t value)
{
	return kymo_aggr_is_signed(aggr) ? (__int128)(int64_t)value : (__int128)value;
}

__int128 kymo_aggr_weight(const struct kymo_aggr *aggr, const struct kymo_aggr_row *row)
{
	switch (aggr->kind) {
	case KYMO_AGGR_SUM:
		return row->sum;
	case KYMO_AGGR_TOP:
		return aggr->has_value ? row->sum : (__int128)row->count;
	case KYMO_AGGR_MIN:
		return wide(aggr, row->min);
	case KYMO_AGGR_MAX:
		return wide(aggr, row->max);
	case KYMO_AGGR_AVG:
		return row->count ? row->sum / (__int128)row->count : 0;
	default:
		return row->count;
	}
}

static int compare_keys(const struct kymo_aggr_table *table, const struct kymo_aggr_row *a,
			const struct kymo_aggr_row *b)
{
	for (size_t i = 0; i < table->aggr->n_keys; i++) {
		const uint64_t x = a->keys.values[i], y = b->keys.values[i];
		const enum kymo_type type = table->aggr->keys[i].type;
		int order = x == y ? 0 : x < y ? -1 : 1;

		if (type == KYMO_TYPE_STRING)
			order = strcmp(kymo_strings_text(&table->strings, x), kymo_strings_text(&table->strings, y));
		else if (kymo_type_is_signed(type) && x != y)
			order = (int64_t)x < (int64_t)y ? -1 : 1;
		if (order)
			return order;
	}
	return a->keys.faults < b->keys.faults ? -1 : a->keys.faults > b->keys.faults;
}

static int compare_rows(const void *a, const void *b, void *data)
{
	const struct kymo_aggr_table *table = data;
	const struct kymo_aggr_row *x = *(const struct kymo_aggr_row *const *)a;
	const struct kymo_aggr_row *y = *(const struct kymo_aggr_row *const *)b;
	const __int128 first = kymo_aggr_weight(table->aggr, x), second = kymo_aggr_weight(table->aggr, y);

	if (first == second)
		return compare_keys(table, x, y);
	return (first > second) == (table->aggr->kind != KYMO_AGGR_MIN) ? -1 : 1;
}

const struct kymo_aggr_row **kymo_aggr_sorted(const struct kymo_aggr_table *table)
{
	const struct kymo_aggr_row **rows = calloc(table->rows.n + 1, sizeof(struct kymo_aggr_row *));

	if (!rows)
		return NULL;
	for (size_t i = 0; i < table->rows.n; i++)
		rows[i] = &table->rows.items[i];
	qsort_r(rows, table->rows.n, sizeof(struct kymo_aggr_row *), compare_rows, (void *)(uintptr_t)table);
	return rows;
}
