#include "report/json_string.h"

#include <stdint.h>

#include "report/text.h"

void kymo_json_string(FILE *out, const char *text)
{
	putc('"', out);
	while (*text) {
		const char *from = text;
		int32_t point = kymo_text_next(&text, true);
		unsigned char byte = (unsigned char)*from;

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (point < 0)
			fprintf(out, "\\u%04x", byte < 0x80 ? byte : 0xfffdu);
		else
			fwrite(from, 1, (size_t)(text - from), out);
	}
	putc('"', out);
}
