/*
 * Distributions of fixed size: log2 histograms, and the values themselves as long as they are few.
 */
#ifndef KYMO_REPORT_STATS_H
#define KYMO_REPORT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bucket BUCKET_ZERO holds 0; BUCKET_ZERO + k holds [2^(k-1), 2^k), BUCKET_ZERO - k the same with a minus. */
#define BUCKET_ZERO 64
#define N_BUCKETS 129

#define MAX_DISTINCT 8
#define MAX_NAMED 32 /* where values have names */

struct value_count {
	uint64_t value, count;
};

struct stats {
	uint64_t count;
	uint64_t min, max; /* as the type has it; valid if count */
	__int128 sum;
	uint64_t buckets[N_BUCKETS];
	struct value_count distinct[MAX_NAMED];
	uint64_t n_others; /* with names: values that `distinct` has no room for */
	uint8_t n_distinct;
	bool many;      /* there were more; `distinct` is of no use without names */
	bool has_names; /* set before the first value */
	bool is_signed;
};

void kymo_stats_add(struct stats *stats, uint64_t value);

/* Of doubles. All but the count of the others is of those that are numbers: NaNs and infinities would make it useless.
 * */
struct reals {
	uint64_t count, n_others;
	double min, max; /* valid if count */
	long double sum; /* no number of doubles makes it overflow */
};

void kymo_reals_add(struct reals *reals, double value);

/* Valid if count. */
double kymo_reals_mean(const struct reals *reals);

/* Smallest and largest value of a bucket, as the type has it. */
uint64_t kymo_bucket_low(unsigned int bucket);
uint64_t kymo_bucket_high(unsigned int bucket);

/* The first and the last bucket that hold something; false where none does. */
bool kymo_stats_range(const struct stats *stats, unsigned int *first_ret, unsigned int *last_ret);

/* Put the distinct values in the order of their counts, largest first. */
void kymo_stats_sort_distinct(struct stats *stats);

#endif
