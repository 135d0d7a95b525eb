/* The older mangling of Rust: C++'s nested names, with escapes, and a hash at the end. */
#include "sym/rust.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"

#define HASH_SIZE 17 /* "h" and 16 digits */

void sym_sink_put(struct sym_sink *sink, const char *text, size_t n)
{
	if (sink->is_full || n >= sink->size - sink->n) {
		sink->is_full = true;
		return;
	}
	memcpy(sink->text + sink->n, text, n);
	sink->n += n;
	sink->text[sink->n] = '\0';
}

bool sym_sink_character(struct sym_sink *sink, uint32_t c)
{
	const unsigned int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char heads[] = { 0, 0xc0, 0xe0, 0xf0 };
	char bytes[4];

	if (c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return false;
	bytes[0] = (char)(heads[more] | c >> (6 * more));
	for (unsigned int i = 1; i <= more; i++)
		bytes[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	sym_sink_put(sink, bytes, more + 1);
	return true;
}

/* "$u7e$", after its "$u": the character. */
static bool put_escaped_character(const char *at, const char *end, struct sym_sink *sink)
{
	uint32_t c = 0;

	if (at == end || end - at > 6)
		return false;
	for (; at < end; at++) {
		if (kymo_hex_digit(*at) < 0)
			return false;
		c = c << 4 | (uint32_t)kymo_hex_digit(*at);
	}
	return sym_sink_character(sink, c);
}

/* What stands between two "$". */
static bool put_escape(const char *at, const char *end, struct sym_sink *sink)
{
	static const struct {
		const char *name, *text;
	} escapes[] = {
		{ "SP", "@" }, { "BP", "*" }, { "RF", "&" }, { "LT", "<" },
		{ "GT", ">" }, { "LP", "(" }, { "RP", ")" }, { "C", "," },
	};
	const size_t n = (size_t)(end - at);

	for (size_t i = 0; i < kymo_countof(escapes); i++)
		if (strlen(escapes[i].name) == n && !memcmp(escapes[i].name, at, n)) {
			sym_sink_put(sink, escapes[i].text, 1);
			return true;
		}
	return n > 1 && *at == 'u' && put_escaped_character(at + 1, end, sink);
}

static bool put_path_part(const char *at, const char *end, struct sym_sink *sink)
{
	/* An underscore keeps an escape from being the first. */
	if (end - at > 1 && at[0] == '_' && at[1] == '$')
		at++;
	while (at < end) {
		const char *close = *at == '$' ? memchr(at + 1, '$', (size_t)(end - at - 1)) : NULL;
		const bool is_path = *at == '.' && at + 1 < end && at[1] == '.';

		if (*at == '$') {
			if (!close || !put_escape(at + 1, close, sink))
				return false;
			at = close + 1;
			continue;
		}
		sym_sink_put(sink, is_path ? "::" : at, is_path ? 2 : 1);
		at += is_path ? 2 : 1;
	}
	return true;
}

static bool is_hash(const char *at, size_t n)
{
	if (n != HASH_SIZE || *at != 'h')
		return false;
	for (size_t i = 1; i < n; i++)
		if (kymo_hex_digit(at[i]) < 0)
			return false;
	return true;
}

bool sym_rust_legacy(const char *name, size_t n, struct sym_sink *sink)
{
	const char *at = name + 3, *end = name + n;
	bool is_first = true;

	if (n < 4 + HASH_SIZE + 2 || memcmp(name, "_ZN", 3) || end[-1] != 'E' ||
	    !is_hash(end - 1 - HASH_SIZE, HASH_SIZE))
		return false;
	while (at < end - 1) {
		size_t size = 0;

		for (; at < end && *at >= '0' && *at <= '9' && size < n; at++)
			size = 10 * size + (size_t)(*at - '0');
		if (!size || size >= (size_t)(end - at))
			return false;
		if (at + size == end - 1)
			return !is_first && is_hash(at, size) && !sink->is_full;
		sym_sink_put(sink, "::", is_first ? 0 : 2);
		if (!put_path_part(at, at + size, sink))
			return false;
		is_first = false;
		at += size;
	}
	return false;
}
