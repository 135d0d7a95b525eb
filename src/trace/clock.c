#include "trace/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define SAMPLES 16
#define SETTLE_NS 20000000
#define SECOND 1000000000u

uint64_t kymo_clock_tsc(void)
{
	_mm_lfence(); /* not before what was read until now */
	return __rdtsc();
}

static uint64_t read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

struct kymo_clock_sample kymo_clock_sample(void)
{
	struct kymo_clock_sample best = { .tsc = 0 };
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < SAMPLES; i++) {
		uint64_t before = __rdtsc(), monotonic = read_ns(CLOCK_MONOTONIC), wall = read_ns(CLOCK_REALTIME);
		uint64_t after = __rdtsc();

		if (after - before >= width)
			continue;
		width = after - before;
		best = (struct kymo_clock_sample){ before + width / 2, monotonic, wall };
	}
	return best;
}

void kymo_clock_settle(const struct kymo_clock_sample *begin)
{
	uint64_t age = read_ns(CLOCK_MONOTONIC) - begin->monotonic_ns;

	if (age < SETTLE_NS)
		nanosleep(&(struct timespec){ 0, (long)(SETTLE_NS - age) }, NULL);
}

/* constant_tsc and nonstop_tsc are CPUID 80000007H, EDX bit 8; the kernel clears the flag in cpuinfo where it found the
 * TSC wanting. */
static bool is_invariant(void)
{
	char line[8192];
	bool found = false;
	FILE *file = fopen("/proc/cpuinfo", "re");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "flags", 5) && strstr(line, "constant_tsc") && strstr(line, "nonstop_tsc");
	fclose(file);
	return found;
}

static uint64_t frequency_of(const struct kymo_clock_sample *begin, const struct kymo_clock_sample *end)
{
	const bool has_both = end->monotonic_ns > begin->monotonic_ns && end->tsc > begin->tsc;
	const uint64_t ns = end->monotonic_ns - begin->monotonic_ns, ticks = end->tsc - begin->tsc;
	const uint64_t frequency = has_both ? (uint64_t)((unsigned __int128)ticks * SECOND / ns) : SECOND;

	return frequency ? frequency : SECOND;
}

uint64_t kymo_clock_frequency(const struct kymo_clock_sample *begin)
{
	struct kymo_clock_sample now;

	kymo_clock_settle(begin);
	now = kymo_clock_sample();
	return frequency_of(begin, &now);
}

void kymo_clock_describe(const struct kymo_clock_sample *begin, const struct kymo_clock_sample *end,
			 struct kymo_ctf_trace *trace)
{
	const uint64_t frequency = frequency_of(begin, end);
	const uint64_t zero = begin->wall_ns - (uint64_t)((unsigned __int128)begin->tsc * SECOND / frequency);
	trace->clock_frequency = frequency;
	trace->clock_offset_s = zero / SECOND;
	trace->clock_offset = (uint64_t)((unsigned __int128)(zero % SECOND) * frequency / SECOND);
	trace->clock_is_invariant = is_invariant();
	trace->monotonic_offset_ns = (int64_t)(begin->monotonic_ns - begin->wall_ns);
}
