/* Counts of records by thread and probe. */
#ifndef KYMO_REPORT_PAIRS_H
#define KYMO_REPORT_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pair {
	uint32_t thread, probe; /* indices in the model's threads, and in trace->events */
	uint64_t count;         /* 0: the entry is free */
	uint64_t recent;        /* of these, since model->since */
};

struct pairs {
	struct pair *items; /* a hash table */
	size_t size, n;     /* a power of two, and how many are used */
};

void kymo_pairs_deinit(struct pairs *pairs);

/* One record more. False when memory is out. */
bool kymo_pairs_add(struct pairs *pairs, size_t thread, size_t probe, bool is_recent);

/* All of them, by thread, and most often first there; a fresh array of pairs->n. NULL when memory is out. */
struct pair *kymo_pairs_sorted(const struct pairs *pairs);

/* The thread's first one in that array, and how many it has. */
const struct pair *kymo_pairs_of(const struct pair *sorted, size_t n, size_t thread, size_t *n_ret);

#endif
