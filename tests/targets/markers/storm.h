/*
 * What storm and the objects with its sites share.
 */
#ifndef KYMO_TESTS_STORM_H
#define KYMO_TESTS_STORM_H

#include <stdint.h>

#define N_SITES 1000 /* of one object; a tenth of them in each part */
#define N_PARTS 10

/* What threads hold in registers across the sites. */
struct sums {
	uint64_t sum, other;
	double real;
};

typedef struct sums storm_part(unsigned long count, struct sums sums);

static const char *const words[] = { "", "a", "storm", "a text that is a little longer than the others" };

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

extern storm_part *const storm_parts[N_PARTS];

#endif
