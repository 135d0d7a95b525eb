/* The TSC against the kernel's clocks. Private to the room. */
#ifndef KYMO_RECORD_CLOCK_H
#define KYMO_RECORD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/ctf.h"

/* The three clocks at one moment, as near as they can be read. */
struct clock_sample {
	uint64_t tsc;
	uint64_t monotonic_ns, wall_ns;
};

uint64_t clock_tsc(void);

/* Take a sample: the tightest of several. */
struct clock_sample clock_sample(void);

/* Describe the TSC in `trace` from two samples; they should lie 20 ms apart or more. */
void clock_describe(const struct clock_sample *begin, const struct clock_sample *end, struct kymo_ctf_trace *trace);

/* Ticks a second, as from `begin` until now; waits until that is old enough. */
uint64_t clock_frequency(const struct clock_sample *begin);

/* Wait until `begin` is old enough for that. */
void clock_settle(const struct clock_sample *begin);

#endif
