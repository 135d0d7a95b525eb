/*
 * The table of an aggregation: a row for each combination of keys. It has a number of rows at most; what would need one
 * more is counted as lost, and rows that are there go on.
 */
#ifndef KYMO_AGGR_TABLE_H
#define KYMO_AGGR_TABLE_H

#include "aggr/aggr.h"
#include "aggr/frame_tree.h"
#include "aggr/strings.h"

/* Buckets of KYMO_AGGR_HIST: bucket KYMO_AGGR_ZERO holds 0, KYMO_AGGR_ZERO + k holds [2^(k-1), 2^k), and
 * KYMO_AGGR_ZERO - k the same with a minus. */
#define KYMO_AGGR_ZERO 64
#define KYMO_AGGR_BUCKETS 129

/* Keys of a row. Of texts and stacks it is their numbers. */
struct kymo_aggr_keys {
	uint64_t values[KYMO_AGGR_KEYS_MAX]; /* 0 where there is none, or it has a fault */
	uint32_t faults;                     /* bit i: key i was not available */
	bool has_no_room;                    /* a text among them found none: they have no row */
};

struct kymo_aggr_row {
	struct kymo_aggr_keys keys;
	uint64_t count;    /* of hits; of values, where the aggregation has one */
	__int128 sum;      /* of values */
	uint64_t min, max; /* of values, as their type has it; valid if count */
	uint64_t *buckets; /* of histograms, or NULL */
};

struct kymo_aggr_table {
	const struct kymo_aggr *aggr; /* what it is of; outlives the table */
	const struct kymo_frame_tree
		*frames; /* of stacks among the keys; outlives the table. NULL: they are not known */
	size_t rows_max;
	KYMO_VEC(struct kymo_aggr_row) rows;
	struct kymo_index index; /* of `rows` */
	struct kymo_aggr_strings strings;
	uint64_t hits;   /* in all rows */
	uint64_t lost;   /* hits that found no room for their keys */
	uint64_t faults; /* hits whose value was not available; they are in no row */
	uint64_t calls_without_entry;
	uint64_t calls_over_losses; /* calls during which records were lost: their durations are not known */
};

void kymo_aggr_table_init(struct kymo_aggr_table *table, const struct kymo_aggr *aggr, size_t rows_max);
void kymo_aggr_table_deinit(struct kymo_aggr_table *table);

/* Forget all rows and counts. */
void kymo_aggr_table_clear(struct kymo_aggr_table *table);

/* Set key `i` to a text. Where there is no room for another text, the keys have none either. */
void kymo_aggr_set_text(struct kymo_aggr_table *table, struct kymo_aggr_keys *keys, size_t i, const char *text);

/* One hit. `value` counts where the aggregation has one. */
void kymo_aggr_add(struct kymo_aggr_table *table, const struct kymo_aggr_keys *keys, uint64_t value);

/* The row of these keys, made if it is not there; NULL: there is no room for it. Good until the next one is made. */
struct kymo_aggr_row *kymo_aggr_row(struct kymo_aggr_table *table, const struct kymo_aggr_keys *keys);

/* How many buckets a row has; 0: it has none. */
size_t kymo_aggr_n_buckets(const struct kymo_aggr *aggr);

/* Least and greatest value of a bucket of an LHIST; those of the first and the last reach to the ends of 64 bits. */
void kymo_aggr_step(const struct kymo_aggr *aggr, size_t bucket, int64_t *low_ret, int64_t *high_ret);

/* The bucket that a value is in. */
size_t kymo_aggr_bucket(const struct kymo_aggr *aggr, uint64_t value);

/* What a row is sorted and drawn by: its count, sum, least, greatest or mean value. */
__int128 kymo_aggr_weight(const struct kymo_aggr *aggr, const struct kymo_aggr_row *row);

/* Rows by weight, the greatest first (of MIN the least); equal ones by their keys. A fresh array of `rows.n`; NULL when
 * memory is out. */
const struct kymo_aggr_row **kymo_aggr_sorted(const struct kymo_aggr_table *table);

#endif
