#include "gdb/words.h"

#include <limits.h>
#include <string.h>

#include "base/hex.h"

bool gdb_words_are_over(const struct gdb_words *words)
{
	return words->at == words->end;
}

bool gdb_take_char(struct gdb_words *words, char c)
{
	if (words->at == words->end || *words->at != c)
		return false;
	words->at++;
	return true;
}

bool gdb_take_text(struct gdb_words *words, const char *text)
{
	const size_t n = strlen(text);

	if (gdb_words_left(words) < n || memcmp(words->at, text, n))
		return false;
	words->at += n;
	return true;
}

bool gdb_take_number(struct gdb_words *words, uint64_t *ret)
{
	const char *at = words->at;
	uint64_t value = 0;
	int digit;

	while (at < words->end && (digit = kymo_hex_digit(*at)) >= 0) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)digit;
		at++;
	}
	if (at == words->at)
		return false;
	words->at = at;
	*ret = value;
	return true;
}

bool gdb_take_int(struct gdb_words *words, int *ret)
{
	struct gdb_words copy = *words;
	uint64_t value;

	if (!gdb_take_number(&copy, &value) || value > INT_MAX)
		return false;
	*words = copy;
	*ret = (int)value;
	return true;
}

static bool byte_at(const char *at, uint8_t *ret)
{
	const int high = kymo_hex_digit(at[0]), low = kymo_hex_digit(at[1]);

	if (high < 0 || low < 0)
		return false;
	*ret = (uint8_t)(high << 4 | low);
	return true;
}

bool gdb_take_hex(struct gdb_words *words, void *ret, size_t n)
{
	uint8_t *bytes = ret, byte;

	if (gdb_words_left(words) / 2 < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!byte_at(words->at + 2 * i, &byte))
			return false;
	for (size_t i = 0; i < n; i++)
		byte_at(words->at + 2 * i, &bytes[i]);
	words->at += 2 * n;
	return true;
}

bool gdb_take_hex_string(struct gdb_words *words, char *ret, size_t max)
{
	const char *at = words->at;
	size_t n = 0;
	uint8_t byte;

	while (words->end - at >= 2 && byte_at(at, &byte)) {
		if (!byte || n + 1 >= max)
			return false;
		ret[n++] = (char)byte;
		at += 2;
	}
	ret[n] = '\0';
	words->at = at;
	return true;
}

struct gdb_words gdb_take_until(struct gdb_words *words, char c)
{
	const size_t left = gdb_words_left(words);
	const char *at = left ? memchr(words->at, c, left) : NULL;
	const struct gdb_words ret = { words->at, at ? at : words->end };

	words->at = at ? at + 1 : words->end;
	return ret;
}

static bool take_id_number(struct gdb_words *words, pid_t *ret)
{
	struct gdb_words copy = *words;
	int value;

	if (gdb_take_text(&copy, "-1")) {
		*words = copy;
		*ret = -1;
		return true;
	}
	if (!gdb_take_int(words, &value))
		return false;
	*ret = value;
	return true;
}

bool gdb_take_id(struct gdb_words *words, struct gdb_id *ret)
{
	struct gdb_words copy = *words;
	struct gdb_id id = { 0, -1 };
	bool is_good;

	if (gdb_take_char(&copy, 'p')) {
		is_good = take_id_number(&copy, &id.pid);
		if (is_good && gdb_take_char(&copy, '.'))
			is_good = take_id_number(&copy, &id.tid);
	} else {
		is_good = take_id_number(&copy, &id.tid);
	}
	if (!is_good)
		return false;
	*words = copy;
	*ret = id;
	return true;
}
