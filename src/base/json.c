#include "base/json.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* A character by its number; above U+FFFF by two, as UTF-16 has it. */
static void write_number(FILE *out, int32_t point)
{
	if (point < 0x10000) {
		fprintf(out, "\\u%04x", (unsigned int)point);
		return;
	}
	point -= 0x10000;
	fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((unsigned int)point >> 10), 0xdc00 + ((unsigned int)point & 0x3ff));
}

void kymo_json_bytes(FILE *out, const char *bytes, size_t n)
{
	fputc('"', out);
	for (size_t size; n; bytes += size, n -= size) {
		int32_t point = kymo_utf8_decode(bytes, n, &size);

		if (point == '"' || point == '\\')
			fprintf(out, "\\%c", (char)point);
		else if (point < 0)
			fputs("\\ufffd", out);
		else if (kymo_utf8_is_hidden(point))
			write_number(out, point);
		else
			fwrite(bytes, 1, size, out);
	}
	fputc('"', out);
}

void kymo_json_string(FILE *out, const char *text)
{
	if (text)
		kymo_json_bytes(out, text, strlen(text));
	else
		fputs("null", out);
}

void kymo_json_integer(FILE *out, uint64_t value, bool is_signed)
{
	if (is_signed)
		fprintf(out, "%" PRId64, (int64_t)value);
	else
		fprintf(out, "%" PRIu64, value);
}
