#include "report/quantiles.h"

#include <stddef.h>
#include <stdlib.h>

#define STEP_BITS 5

void kymo_quantiles_deinit(struct quantiles *quantiles)
{
	for (unsigned int i = 0; i < N_OCTAVES; i++)
		free(quantiles->octaves[i]);
	*quantiles = (struct quantiles){ 0 };
}

/* Octave 0 holds [0, 32), octave k [2^(k+4), 2^(k+5)). */
bool kymo_quantiles_add(struct quantiles *quantiles, uint64_t value)
{
	unsigned int log2 = value < QUANTILE_STEPS ? STEP_BITS : 63 - (unsigned int)__builtin_clzll(value);
	unsigned int octave = value < QUANTILE_STEPS ? 0 : log2 - STEP_BITS + 1;
	unsigned int step = (unsigned int)(value >> (log2 - STEP_BITS)) & (QUANTILE_STEPS - 1);

	if (!quantiles->octaves[octave]) {
		quantiles->octaves[octave] = calloc(QUANTILE_STEPS, sizeof(uint64_t));
		if (!quantiles->octaves[octave])
			return false;
	}
	quantiles->octaves[octave][step]++;
	quantiles->count++;
	return true;
}

static uint64_t middle_of(unsigned int octave, unsigned int step)
{
	uint64_t width = octave ? 1ull << (octave - 1) : 1;

	return (octave ? QUANTILE_STEPS + step : step) * width + (width - 1) / 2;
}

uint64_t kymo_quantiles_get(const struct quantiles *quantiles, unsigned int percent)
{
	uint64_t rank = (uint64_t)(((unsigned __int128)quantiles->count * percent + 99) / 100), seen = 0;

	for (unsigned int octave = 0; octave < N_OCTAVES; octave++) {
		for (unsigned int step = 0; quantiles->octaves[octave] && step < QUANTILE_STEPS; step++) {
			seen += quantiles->octaves[octave][step];
			if (seen && seen >= rank)
				return middle_of(octave, step);
		}
	}
	return 0;
}
