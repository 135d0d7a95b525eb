#include "report/stats.h"

#include <math.h>
#include <stdlib.h>

static unsigned int log2_bucket(uint64_t magnitude)
{
	return magnitude ? 64 - (unsigned int)__builtin_clzll(magnitude) : 0;
}

static void add_distinct(struct stats *stats, uint64_t value)
{
	for (unsigned int i = 0; i < stats->n_distinct; i++) {
		if (stats->distinct[i].value == value) {
			stats->distinct[i].count++;
			return;
		}
	}
	if (stats->n_distinct < (stats->has_names ? MAX_NAMED : MAX_DISTINCT)) {
		stats->distinct[stats->n_distinct++] = (struct value_count){ value, 1 };
	} else {
		stats->many = true;
		stats->n_others++;
	}
}

void kymo_stats_add(struct stats *stats, uint64_t value)
{
	bool negative = stats->is_signed && (int64_t)value < 0;
	/* Signed values are compared as unsigned ones with the sign bit turned. */
	uint64_t turn = (uint64_t)stats->is_signed << 63;

	stats->buckets[negative ? BUCKET_ZERO - log2_bucket(0 - value) : BUCKET_ZERO + log2_bucket(value)]++;
	if (!stats->count || (value ^ turn) < (stats->min ^ turn))
		stats->min = value;
	if (!stats->count || (value ^ turn) > (stats->max ^ turn))
		stats->max = value;
	stats->sum += stats->is_signed ? (__int128)(int64_t)value : (__int128)value;
	stats->count++;
	if (!stats->many || stats->has_names)
		add_distinct(stats, value);
}

void kymo_reals_add(struct reals *reals, double value)
{
	if (!isfinite(value)) {
		reals->n_others++;
		return;
	}
	if (!reals->count || value < reals->min)
		reals->min = value;
	if (!reals->count || value > reals->max)
		reals->max = value;
	reals->sum += value;
	reals->count++;
}

double kymo_reals_mean(const struct reals *reals)
{
	return (double)(reals->sum / (long double)reals->count);
}

uint64_t kymo_bucket_low(unsigned int bucket)
{
	if (bucket > BUCKET_ZERO)
		return 1ull << (bucket - BUCKET_ZERO - 1);
	/* The last one downward holds INT64_MIN alone. */
	if (bucket < BUCKET_ZERO)
		return bucket ? 0 - kymo_bucket_high(2 * BUCKET_ZERO - bucket) : 1ull << 63;
	return 0;
}

uint64_t kymo_bucket_high(unsigned int bucket)
{
	if (bucket > BUCKET_ZERO)
		return UINT64_MAX >> (BUCKET_ZERO - (bucket - BUCKET_ZERO));
	if (bucket < BUCKET_ZERO)
		return 0 - kymo_bucket_low(2 * BUCKET_ZERO - bucket);
	return 0;
}

bool kymo_stats_range(const struct stats *stats, unsigned int *first_ret, unsigned int *last_ret)
{
	unsigned int first = 0, last = N_BUCKETS;

	while (first < N_BUCKETS && !stats->buckets[first])
		first++;
	if (first == N_BUCKETS)
		return false;
	while (!stats->buckets[last - 1])
		last--;
	*first_ret = first;
	*last_ret = last - 1;
	return true;
}

static int compare_counts(const void *a, const void *b)
{
	const struct value_count *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (int64_t)x->value < (int64_t)y->value ? -1 : (int64_t)x->value > (int64_t)y->value;
}

void kymo_stats_sort_distinct(struct stats *stats)
{
	qsort(stats->distinct, stats->n_distinct, sizeof(*stats->distinct), compare_counts);
}
