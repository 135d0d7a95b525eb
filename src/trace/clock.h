/* The TSC against the kernel's clocks. */
#ifndef KYMO_TRACE_CLOCK_H
#define KYMO_TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/ctf.h"

/* The three clocks at one moment, as near as they can be read. */
struct kymo_clock_sample {
	uint64_t tsc;
	uint64_t monotonic_ns, wall_ns;
};

uint64_t kymo_clock_tsc(void);

/* Take a sample: the tightest of several. */
struct kymo_clock_sample kymo_clock_sample(void);

/* Describe the TSC in `trace` from two samples; they should lie 20 ms apart or more. */
void kymo_clock_describe(const struct kymo_clock_sample *begin, const struct kymo_clock_sample *end,
			 struct kymo_ctf_trace *trace);

/* Ticks a second, as from `begin` until now; waits until that is old enough. */
uint64_t kymo_clock_frequency(const struct kymo_clock_sample *begin);

/* Wait until `begin` is old enough for that. */
void kymo_clock_settle(const struct kymo_clock_sample *begin);

#endif
