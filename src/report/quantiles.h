/*
 * Quantiles of values in steps of a 32nd of a power of two: within 1.6 % of the true ones, and exact below 64.
 */
#ifndef KYMO_REPORT_QUANTILES_H
#define KYMO_REPORT_QUANTILES_H

#include <stdbool.h>
#include <stdint.h>

#define QUANTILE_STEPS 32
#define N_OCTAVES 60

struct quantiles {
	uint64_t count;
	uint64_t *octaves[N_OCTAVES]; /* counts of its steps; NULL where it has none */
};

/* Frees the counts. */
void kymo_quantiles_deinit(struct quantiles *quantiles);

/* False when memory is out. */
bool kymo_quantiles_add(struct quantiles *quantiles, uint64_t value);

/* The value that `percent` (1 to 100) of all values do not exceed: the middle of its step. 0 where there is none. */
uint64_t kymo_quantiles_get(const struct quantiles *quantiles, unsigned int percent);

#endif
