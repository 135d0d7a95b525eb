/*
 * From the kernel's time to the trace's: BPF programs stamp with CLOCK_MONOTONIC, traces with the TSC. Both are sampled
 * together again and again, and a stamp is placed between the two samples that enclose it; so it is as exact as they
 * are, and NTP bending the one clock does not add up.
 */
#ifndef KYMO_TRACE_KTIME_H
#define KYMO_TRACE_KTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/clock.h"

#define KYMO_KTIME_SAMPLES 16

struct kymo_ktime {
	struct kymo_clock_sample samples[KYMO_KTIME_SAMPLES]; /* the newest ones, oldest first */
	size_t n;
};

/* Add a sample. One that is not later than the last by both clocks is left out. */
void kymo_ktime_add(struct kymo_ktime *ktime, const struct kymo_clock_sample *sample);

/* Whether the newest sample is not before `ns`. */
bool kymo_ktime_reaches(const struct kymo_ktime *ktime, uint64_t ns);

/*
 * The TSC at `ns`, of at least two samples. Later samples do not change what it says of a moment, unless one of the two
 * samples around that moment has been dropped. Never falls with rising `ns`.
 */
uint64_t kymo_ktime_tsc(const struct kymo_ktime *ktime, uint64_t ns);

#endif
