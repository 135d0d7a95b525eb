#include "sym/rust_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sym/punycode.h"

/* ---- letters and numbers --------------------------------------------------------------------- */

void rust_put(struct rust_reader *r, const char *text)
{
	if (r->sink)
		sym_sink_put(r->sink, text, strlen(text));
}

void rust_put_number(struct rust_reader *r, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	rust_put(r, text);
}

char rust_peek(const struct rust_reader *r)
{
	return r->at < r->n ? r->name[r->at] : '\0';
}

bool rust_take(struct rust_reader *r, char c)
{
	if (!c || rust_peek(r) != c)
		return false;
	r->at++;
	return true;
}

bool rust_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool rust_read_base62(struct rust_reader *r, uint64_t *ret)
{
	uint64_t value = 0;

	if (rust_take(r, '_')) {
		*ret = 0;
		return true;
	}
	while (!rust_take(r, '_')) {
		const char c = rust_peek(r);
		const int digit = rust_is_digit(c)       ? c - '0'
				  : c >= 'a' && c <= 'z' ? c - 'a' + 10
				  : c >= 'A' && c <= 'Z' ? c - 'A' + 36
							 : -1;

		if (digit < 0 || __builtin_mul_overflow(value, UINT64_C(62), &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
		r->at++;
	}
	return !__builtin_add_overflow(value, UINT64_C(1), ret);
}

bool rust_read_optional(struct rust_reader *r, char tag, uint64_t *ret)
{
	*ret = 0;
	if (!rust_take(r, tag))
		return true;
	return rust_read_base62(r, ret) && !__builtin_add_overflow(*ret, UINT64_C(1), ret);
}

/* ---- identifiers ----------------------------------------------------------------------------- */

bool rust_read_identifier(struct rust_reader *r, struct rust_identifier *ret)
{
	struct rust_identifier id = { .is_punycode = rust_take(r, 'u') };

	if (!rust_is_digit(rust_peek(r)))
		return false;
	if (!rust_take(r, '0'))
		for (; rust_is_digit(rust_peek(r)) && id.n <= r->n; r->at++)
			id.n = 10 * id.n + (size_t)(rust_peek(r) - '0');
	rust_take(r, '_');
	if (id.n > r->n - r->at)
		return false;
	id.text = r->name + r->at;
	r->at += id.n;
	*ret = id;
	return true;
}

bool rust_put_identifier(struct rust_reader *r, const struct rust_identifier *id)
{
	if (!r->sink)
		return true;
	if (id->is_punycode)
		return sym_put_punycode(id->text, id->n, r->sink);
	sym_sink_put(r->sink, id->text, id->n);
	return true;
}
