#include "trace/ktime.h"

#include <string.h>

void kymo_ktime_add(struct kymo_ktime *ktime, const struct kymo_clock_sample *sample)
{
	if (ktime->n) {
		const struct kymo_clock_sample *last = &ktime->samples[ktime->n - 1];

		if (sample->monotonic_ns <= last->monotonic_ns || sample->tsc <= last->tsc)
			return;
	}
	if (ktime->n == KYMO_KTIME_SAMPLES) {
		memmove(ktime->samples, ktime->samples + 1, (KYMO_KTIME_SAMPLES - 1) * sizeof(ktime->samples[0]));
		ktime->n--;
	}
	ktime->samples[ktime->n++] = *sample;
}

bool kymo_ktime_reaches(const struct kymo_ktime *ktime, uint64_t ns)
{
	return ktime->n && ktime->samples[ktime->n - 1].monotonic_ns >= ns;
}

uint64_t kymo_ktime_tsc(const struct kymo_ktime *ktime, uint64_t ns)
{
	const struct kymo_clock_sample *from, *to;
	uint64_t width_ns, width;
	size_t i = ktime->n - 1;

	/* Most stamps are new. */
	while (i > 1 && ktime->samples[i - 1].monotonic_ns > ns)
		i--;
	from = &ktime->samples[i - 1];
	to = &ktime->samples[i];
	width_ns = to->monotonic_ns - from->monotonic_ns;
	width = to->tsc - from->tsc;
	if (ns >= from->monotonic_ns)
		return from->tsc + (uint64_t)((unsigned __int128)(ns - from->monotonic_ns) * width / width_ns);
	/* Older than all samples. */
	width = (uint64_t)((unsigned __int128)(from->monotonic_ns - ns) * width / width_ns);
	return width < from->tsc ? from->tsc - width : 0;
}
