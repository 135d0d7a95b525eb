#include "probe/plan/sample.h"

#include "probe/probes.h"
#include "probe/spec/spec.h"
#include "wire/shared.h"

#define BURSTS_A_SECOND 10 /* a bucket has the tokens of a tenth of a second, and one at least */

struct kymo_pad_sample probes_sample(const struct kymo_probes *probes, size_t at)
{
	static const enum kymo_pad_sampling kinds[] = {
		[KYMO_SPEC_SAMPLE_ALL] = KYMO_PAD_SAMPLE_ALL,
		[KYMO_SPEC_SAMPLE_EVERY] = KYMO_PAD_SAMPLE_EVERY,
		[KYMO_SPEC_SAMPLE_RATE] = KYMO_PAD_SAMPLE_RATE,
		[KYMO_SPEC_SAMPLE_FIRST] = KYMO_PAD_SAMPLE_FIRST,
	};
	const struct kymo_spec *spec = &probes->specs[at];
	struct kymo_pad_sample sample = { .kind = kinds[spec->sampling], .n = spec->sample_n };
	const uint32_t saved = spec->sample_n > BURSTS_A_SECOND ? spec->sample_n / BURSTS_A_SECOND - 1 : 0;

	_Static_assert(KYMO_SPEC_SAMPLES_MAX == KYMO_WIRE_SAMPLES, "each spec that samples has a word");
	for (size_t i = 0; i < at; i++)
		sample.slot += probes->specs[i].sampling != KYMO_SPEC_SAMPLE_ALL;
	if (sample.kind != KYMO_PAD_SAMPLE_RATE)
		return sample;
	sample.n = probes->options.frequency / spec->sample_n;
	sample.n += !sample.n;
	sample.burst = saved * sample.n;
	return sample;
}
