#include "probe/spec/spec_sample.h"
#include "base/caret.h"

#include <inttypes.h>
#include <stdio.h>

#define SAMPLE_MAX 1000000000u

/* What follows the word and the blanks after it; NULL where another word is there. */
static const char *behind_word(const char *at, const char *word)
{
	const char *end = kymo_spec_skip_word(at, word);

	return end ? kymo_spec_skip_blanks(end) : NULL;
}

bool kymo_spec_is_sample(const char *at)
{
	const char *sample = behind_word(at, "sample"), *first = behind_word(at, "first");

	return (sample && kymo_spec_is_digit(*sample)) || (first && kymo_spec_is_digit(*first));
}

/* A decimal number from 1 on; false: it is none. */
static bool take_number(const char **at, uint64_t *ret)
{
	uint64_t value = 0;

	while (kymo_spec_is_digit(**at) && value <= SAMPLE_MAX)
		value = 10 * value + (uint64_t)(*(*at)++ - '0');
	*ret = value;
	return value && value <= SAMPLE_MAX;
}

static bool is_end(const char *at)
{
	return !*at || kymo_spec_is_space(*at);
}

struct kymo_error *kymo_spec_sample_parse(const char *text, const char **at, struct kymo_spec *spec)
{
	const char *begin = kymo_spec_skip_blanks(*at), *first = behind_word(begin, "first");
	const char *word = first ? first : behind_word(begin, "sample"), *behind = word;
	enum kymo_spec_sampling sampling = KYMO_SPEC_SAMPLE_FIRST;
	uint64_t n;
	bool is;

	if (spec->sampling)
		return kymo_error_at(text, begin, "a probe has one of 'sample' and 'first', once");
	if (first) {
		is = take_number(&behind, &n) && is_end(behind);
	} else if (word[0] == '1' && word[1] == '/' && kymo_spec_is_digit(word[2])) {
		sampling = KYMO_SPEC_SAMPLE_EVERY;
		behind += 2;
		is = take_number(&behind, &n) && is_end(behind);
	} else {
		sampling = KYMO_SPEC_SAMPLE_RATE;
		is = take_number(&behind, &n) && behind[0] == '/' && behind[1] == 's' && is_end(behind + 2);
		behind += is ? 2 : 0;
	}
	if (!is && first)
		return kymo_error_at(text, word, "expected a number of records up to %u, as in 'first 100'",
				     SAMPLE_MAX);
	if (!is)
		return kymo_error_at(text, word,
				     "expected one in so many hits, as in 'sample 1/100', or records a second, as in "
				     "'sample 50/s', with numbers up to %u",
				     SAMPLE_MAX);
	spec->sampling = sampling;
	spec->sample_n = (uint32_t)n;
	*at = behind;
	return NULL;
}

char *kymo_spec_sample_text(const struct kymo_spec *spec)
{
	static const char *const formats[] = {
		[KYMO_SPEC_SAMPLE_EVERY] = "1/%" PRIu32,
		[KYMO_SPEC_SAMPLE_RATE] = "%" PRIu32 "/s",
		[KYMO_SPEC_SAMPLE_FIRST] = "first %" PRIu32,
	};
	char *text;

	if (!spec->sampling || asprintf(&text, formats[spec->sampling], spec->sample_n) < 0)
		return NULL;
	return text;
}

size_t kymo_specs_sampled(const struct kymo_spec *specs, size_t n)
{
	size_t sampled = 0;

	for (size_t i = 0; i < n; i++)
		sampled += specs[i].sampling != KYMO_SPEC_SAMPLE_ALL && !specs[i].shares_sample;
	return sampled;
}
