/*
 * Punycode (RFC 3492, 6.2), as Rust writes it: with "_" for "-".
 */
#include "sym/punycode.h"

#include <string.h>

#include "sym/rust.h"

#define CHARACTERS_MAX 256

/* How much the next delta changes the bias (RFC 3492, 6.1). */
static uint32_t adapt(uint32_t delta, uint32_t n, bool is_first)
{
	uint32_t k = 0;

	delta /= is_first ? 700 : 2;
	for (delta += delta / n; delta > 35 * 26 / 2; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* A number of variable length, as punycode has them, from `at`, which is moved. */
static bool read_delta(const char **at, const char *end, uint32_t bias, uint32_t *ret)
{
	uint32_t value = 0, weight = 1;

	for (uint32_t k = 36;; k += 36) {
		const uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
		const char c = *at < end ? *(*at)++ : '\0';
		const uint32_t digit = c >= 'a' && c <= 'z'   ? (uint32_t)(c - 'a')
				       : c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26
							      : 36;
		uint32_t part;

		if (digit > 35 || __builtin_mul_overflow(digit, weight, &part) ||
		    __builtin_add_overflow(value, part, &value))
			return false;
		if (digit < t) {
			*ret = value;
			return true;
		}
		if (__builtin_mul_overflow(weight, 36 - t, &weight))
			return false;
	}
}

static bool decode(const char *at, size_t size, uint32_t characters[CHARACTERS_MAX], uint32_t *n_ret)
{
	const char *end = at + size, *basic = memrchr(at, '_', size);
	uint32_t n = 0, bias = 72, i = 0, c = 128, delta;

	if (size > CHARACTERS_MAX)
		return false;
	while (basic && at < basic)
		characters[n++] = (unsigned char)*at++;
	at += basic != NULL;
	for (bool is_first = true; at < end; is_first = false) {
		if (n == CHARACTERS_MAX || !read_delta(&at, end, bias, &delta) || __builtin_add_overflow(i, delta, &i))
			return false;
		n++;
		bias = adapt(delta, n, is_first);
		if (__builtin_add_overflow(c, i / n, &c))
			return false;
		i %= n;
		memmove(&characters[i + 1], &characters[i], (n - 1 - i) * sizeof(*characters));
		characters[i++] = c;
	}
	*n_ret = n;
	return true;
}

bool sym_put_punycode(const char *text, size_t size, struct sym_sink *sink)
{
	uint32_t characters[CHARACTERS_MAX], n;

	if (!decode(text, size, characters, &n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!sym_sink_character(sink, characters[i]))
			return false;
	return true;
}
