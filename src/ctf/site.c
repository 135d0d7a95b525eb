#include "ctf/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "file:"

bool kymo_ctf_has_site(const struct kymo_ctf_event *event)
{
	return event->path || event->offset || event->symbol || event->build_id;
}

static void write_encoded(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			     strchr("-._~/:@,", c);

		fprintf(out, plain ? "%c" : "%%%02x", c);
	}
}

static void write_part(FILE *out, char *separator, const char *key, const char *value)
{
	if (!value)
		return;
	fprintf(out, "%c%s=", *separator, key);
	write_encoded(out, value);
	*separator = '&';
}

void kymo_ctf_write_site(FILE *out, const struct kymo_ctf_event *event)
{
	char separator = '?', offset[32];

	snprintf(offset, sizeof(offset), "0x%" PRIx64, event->offset);
	fputs(SCHEME, out);
	write_encoded(out, event->path ? event->path : "");
	write_part(out, &separator, "offset", offset);
	write_part(out, &separator, "symbol", event->symbol);
	write_part(out, &separator, "build-id", event->build_id);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int decode(const char *text, size_t size, char **ret)
{
	char *decoded = malloc(size + 1), *to = decoded;

	if (!decoded)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '%') {
			int high = size - i > 2 ? hex_digit(text[i + 1]) : -1;
			int low = size - i > 2 ? hex_digit(text[i + 2]) : -1;

			c = high < 0 || low < 0 ? '\0' : (char)(high << 4 | low);
			i += 2;
		}
		if (!c) {
			free(decoded);
			return -EINVAL;
		}
		*to++ = c;
	}
	*to = '\0';
	*ret = decoded;
	return 0;
}

static int parse_offset(const char *text, uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (strncmp(text, "0x", 2) || hex_digit(text[2]) < 0)
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 16);
	if (errno || *end)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* `key=value` of `size` bytes. Keys that are not known are of a later kymo and no harm. */
static int parse_part(const char *part, size_t size, struct kymo_ctf_event *event)
{
	const char *equals = memchr(part, '=', size);
	size_t length = equals ? (size_t)(equals - part) : size;
	char *value, **slot = NULL;
	int err;

	if (!equals)
		return -EINVAL;
	err = decode(equals + 1, size - length - 1, &value);
	if (err)
		return err;
	if (length == 6 && !memcmp(part, "offset", length))
		err = parse_offset(value, &event->offset);
	else if (length == 6 && !memcmp(part, "symbol", length))
		slot = &event->symbol;
	else if (length == 8 && !memcmp(part, "build-id", length))
		slot = &event->build_id;
	if (!slot || *slot) {
		free(value);
		return slot ? -EINVAL : err;
	}
	*slot = value;
	return 0;
}

int kymo_ctf_parse_site(const char *uri, struct kymo_ctf_event *event)
{
	size_t length;
	int err = 0;

	if (strncmp(uri, SCHEME, strlen(SCHEME)))
		return -EINVAL;
	uri += strlen(SCHEME);
	length = strcspn(uri, "?");
	if (length)
		err = decode(uri, length, &event->path);
	uri += length;
	while (!err && *uri) {
		uri++;
		length = strcspn(uri, "&");
		err = parse_part(uri, length, event);
		uri += length;
	}
	return err;
}
