/*
 * From the kernel's time to the trace's: BPF programs stamp with CLOCK_MONOTONIC, traces with the TSC. Both are sampled
 * together again and again, and a stamp is placed between the two samples that enclose it; so it is as exact as they
 * are, and NTP bending the one clock does not add up. Private to the room.
 */
#ifndef KYMO_RECORD_KTIME_H
#define KYMO_RECORD_KTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "record/clock.h"

#define KTIME_SAMPLES 16

struct ktime {
	struct clock_sample samples[KTIME_SAMPLES]; /* the newest ones, oldest first */
	size_t n;
};

/* Add a sample. One that is not later than the last by both clocks is left out. */
void ktime_add(struct ktime *ktime, const struct clock_sample *sample);

/* Whether the newest sample is not before `ns`. */
bool ktime_reaches(const struct ktime *ktime, uint64_t ns);

/*
 * The TSC at `ns`, of at least two samples. What it says of one moment does not change by later samples, as long as
 * it is reached, and none of the two around it has been dropped. Never falls with rising `ns`.
 */
uint64_t ktime_tsc(const struct ktime *ktime, uint64_t ns);

#endif
