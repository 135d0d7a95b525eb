#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

int32_t kymo_text_next(const char **text, bool unicode)
{
	size_t size;
	int32_t point = kymo_utf8_decode(*text, SIZE_MAX, &size);

	if (point < 0 || kymo_utf8_is_hidden(point) || (!unicode && point >= 0x80)) {
		*text += 1;
		return -1;
	}
	*text += size;
	return point;
}

char *kymo_text_escape(const char *text, bool unicode)
{
	char *escaped = malloc(strlen(text) * 4 + 1), *to = escaped;

	if (!escaped)
		return NULL;
	while (*text) {
		const char *from = text;

		if (kymo_text_next(&text, unicode) < 0) {
			to += sprintf(to, "\\x%02x", (unsigned char)*from);
			continue;
		}
		memcpy(to, from, (size_t)(text - from));
		to += text - from;
	}
	*to = '\0';
	return escaped;
}

void kymo_text_write(FILE *out, const char *text, bool unicode)
{
	while (*text) {
		const char *from = text;

		if (kymo_text_next(&text, unicode) < 0)
			fprintf(out, "\\x%02x", (unsigned char)*from);
		else
			fwrite_unlocked(from, 1, (size_t)(text - from), out);
	}
}

void kymo_text_quote(FILE *out, const char *text, bool unicode)
{
	static const char from[] = "\a\b\t\n\v\f\r\"\\", to[] = "abtnvfr\"\\";

	putc_unlocked('"', out);
	while (*text) {
		const char *at = text, *known = strchr(from, *text);
		int32_t point = kymo_text_next(&text, unicode);

		if (known)
			fprintf(out, "\\%c", to[known - from]);
		else if (point < 0)
			fprintf(out, "\\x%02x", (unsigned char)*at);
		else
			fwrite_unlocked(at, 1, (size_t)(text - at), out);
	}
	putc_unlocked('"', out);
}

static bool is_wide(int32_t point)
{
	return (point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
	       (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
	       (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
	       (point >= 0x1f300 && point <= 0x1faff) || (point >= 0x20000 && point <= 0x3fffd);
}

static unsigned int width_of(int32_t point)
{
	return point >= 0x300 && point < 0x370 ? 0 : is_wide(point) ? 2 : 1;
}

unsigned int kymo_text_columns(const char *text)
{
	unsigned int columns = 0;

	while (*text)
		columns += width_of(kymo_text_next(&text, true));
	return columns;
}

size_t kymo_text_fit(const char *text, unsigned int columns, unsigned int *columns_ret)
{
	const char *at = text;
	unsigned int used = 0;

	while (*at) {
		const char *next = at;
		unsigned int width = width_of(kymo_text_next(&next, true));

		if (width > columns - used)
			break;
		used += width;
		at = next;
	}
	*columns_ret = used;
	return (size_t)(at - text);
}

int kymo_text_compare(const char *a, const char *b)
{
	if (!a || !b)
		return !!a - !!b;
	return strcmp(a, b);
}

char *kymo_text_double(char buffer[TEXT_NUMBER], double value)
{
	if (isnan(value)) {
		/* Its sign says nothing. */
		snprintf(buffer, TEXT_NUMBER, "nan");
		return buffer;
	}
	/* 15 digits are always in a double, 17 always tell it from others. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buffer, TEXT_NUMBER, "%.*g", digits, value);
		if (strtod(buffer, NULL) == value)
			break;
	}
	return buffer;
}

char *kymo_text_real(char buffer[TEXT_NUMBER], enum kymo_type type, double value)
{
	if (type != KYMO_TYPE_F32 || isnan(value))
		return kymo_text_double(buffer, value);
	for (int digits = 6; digits <= 9; digits++) {
		snprintf(buffer, TEXT_NUMBER, "%.*g", digits, value);
		if (strtof(buffer, NULL) == (float)value)
			break;
	}
	return buffer;
}

char *kymo_text_signed(char buffer[TEXT_NUMBER], uint64_t magnitude, bool negative)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, magnitude);
	char *to = buffer;

	if (negative)
		*to++ = '-';
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buffer;
}

char *kymo_text_count(char buffer[TEXT_NUMBER], uint64_t value)
{
	return kymo_text_signed(buffer, value, false);
}

/* Three significant digits. */
static void three_digits(char *buffer, double value, const char *suffix)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(buffer, TEXT_NUMBER, "%.*f%s", decimals, value, suffix);
}

char *kymo_text_short(char buffer[TEXT_NUMBER], double value)
{
	static const char *const suffixes[] = { "k", "M", "G", "T", "P", "E" };
	size_t i = 0;

	if (value < 999.5) {
		snprintf(buffer, TEXT_NUMBER, value < 9.95 && value > 0 ? "%.1f" : "%.0f", value);
		return buffer;
	}
	for (value /= 1000; value >= 999.5 && i < 5; i++)
		value /= 1000;
	three_digits(buffer, value, suffixes[i]);
	return buffer;
}

char *kymo_text_power(char buffer[TEXT_NUMBER], unsigned int exponent)
{
	static const char *const suffixes[] = { "", "K", "M", "G", "T", "P", "E" };

	snprintf(buffer, TEXT_NUMBER, "%u%s", 1u << exponent % 10, suffixes[exponent / 10 % 7]);
	return buffer;
}

char *kymo_text_span(char buffer[TEXT_NUMBER], uint64_t ns, bool unicode)
{
	double value = (double)ns;
	const char *unit;

	if (ns < 1000) {
		snprintf(buffer, TEXT_NUMBER, "%" PRIu64 "ns", ns);
		return buffer;
	}
	if (value < 999.5e3)
		value /= 1e3, unit = unicode ? "µs" : "us";
	else if (value < 999.5e6)
		value /= 1e6, unit = "ms";
	else
		value /= 1e9, unit = "s";
	snprintf(buffer, TEXT_NUMBER, value < 9.95 ? "%.1f%s" : "%.0f%s", value, unit);
	return buffer;
}

char *kymo_text_seconds(char buffer[TEXT_NUMBER], int64_t ns, unsigned int decimals)
{
	uint64_t magnitude = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, shown = 1000000000;
	int n;

	for (unsigned int i = 0; i < decimals; i++)
		shown /= 10;
	if (magnitude < shown) /* no "-0.000" */
		ns = 0;
	n = snprintf(buffer, TEXT_NUMBER, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", magnitude / 1000000000,
		     magnitude % 1000000000);

	buffer[decimals ? n - 9 + (int)decimals : n - 10] = '\0';
	return buffer;
}
