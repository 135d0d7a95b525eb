#include "probe/threads/sample.h"

#include <sys/random.h>
#include <x86intrin.h>

#include "probe/probes.h"
#include "probe/spec/spec_sample.h"
#include "proc/memory.h"
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
	const struct kymo_spec *spec = &probes->wanted.specs[at];
	struct kymo_pad_sample sample = { .kind = kinds[spec->sampling], .n = spec->sample_n };
	const uint32_t saved = spec->sample_n > BURSTS_A_SECOND ? spec->sample_n / BURSTS_A_SECOND - 1 : 0;

	_Static_assert(KYMO_SPEC_SAMPLES_MAX == KYMO_WIRE_SAMPLES, "each one that samples has a word");
	if (sample.kind != KYMO_PAD_SAMPLE_ALL)
		sample.slot = (uint32_t)kymo_specs_sampled(probes->wanted.specs, at + 1) - 1;
	if (sample.kind != KYMO_PAD_SAMPLE_RATE)
		return sample;
	sample.n = probes->wanted.options.frequency / spec->sample_n;
	sample.n += !sample.n;
	sample.burst = saved * sample.n;
	return sample;
}

static uint64_t first_word(const struct kymo_pad_sample *sample, uint64_t random)
{
	switch (sample->kind) {
	case KYMO_PAD_SAMPLE_EVERY:
		return random % sample->n;
	case KYMO_PAD_SAMPLE_RATE:
		return __rdtsc() + sample->burst + random % sample->n;
	default:
		return 0;
	}
}

struct kymo_error *probes_begin_samples(const struct kymo_probes *probes, struct kymo_process *process)
{
	struct kymo_wire_sample words[KYMO_WIRE_SAMPLES] = { 0 };
	uint64_t random[KYMO_WIRE_SAMPLES] = { 0 };
	bool has_any = false;
	int err;

	for (size_t i = 0; i < probes->wanted.n_specs; i++)
		has_any |= probes->wanted.specs[i].sampling != KYMO_SPEC_SAMPLE_ALL;
	if (!has_any || getrandom(random, sizeof(random), GRND_NONBLOCK) < 0) /* then they are as they are: zero */
		return NULL;
	for (size_t i = 0; i < probes->wanted.n_specs; i++) {
		const struct kymo_pad_sample sample = probes_sample(probes, i);

		if (sample.kind != KYMO_PAD_SAMPLE_ALL)
			words[sample.slot].word = first_word(&sample, random[sample.slot]);
	}
	err = kymo_process_write(process, probes->shared.live[0] + KYMO_PAD_LIVE_SAMPLES, words, sizeof(words));
	return err ? kymo_error_errno(err, "cannot write to the live page") : NULL;
}
