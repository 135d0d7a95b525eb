#include "ctf/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "ctf/trace.h"

#define SCHEME "file:"

static const char *const kinds[] = {
	[KYMO_CTF_PLACE] = "place",
	[KYMO_CTF_ENTRY] = "entry",
	[KYMO_CTF_RETURN] = "return",
	[KYMO_CTF_MARKER] = "marker",
	[KYMO_CTF_SYSCALL] = "syscall",
	[KYMO_CTF_SYSRET] = "sysret",
	[KYMO_CTF_AGGREGATION] = "aggregation",
	[KYMO_CTF_FRAME] = "frame",
	[KYMO_CTF_SOURCE] = "source",
	[KYMO_CTF_BRANCH] = "branch",
	[KYMO_CTF_BRANCH_CODE] = "branch_code",
	[KYMO_CTF_BRANCH_THREAD] = "branch_thread",
};

const char *kymo_ctf_kind_name(enum kymo_ctf_kind kind)
{
	return kinds[kind];
}

bool kymo_ctf_has_site(const struct kymo_ctf_event *event)
{
	return event->path || event->offset || event->symbol || event->build_id || event->source || event->format ||
	       event->sample || event->writes || event->is_filtered || event->kind != KYMO_CTF_PLACE;
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
	char separator = '?', offset[32], function[32];

	snprintf(offset, sizeof(offset), "0x%" PRIx64, event->offset);
	fputs(SCHEME, out);
	write_encoded(out, event->path ? event->path : "");
	write_part(out, &separator, "offset", offset);
	write_part(out, &separator, "symbol", event->symbol);
	write_part(out, &separator, "build-id", event->build_id);
	if (event->kind != KYMO_CTF_PLACE)
		write_part(out, &separator, "kind", kinds[event->kind]);
	if (kymo_ctf_is_of_function(event)) {
		snprintf(function, sizeof(function), "0x%" PRIx64, event->function_offset);
		write_part(out, &separator, "function", function);
	}
	write_part(out, &separator, "source", event->source);
	write_part(out, &separator, "format", event->format);
	write_part(out, &separator, "sample", event->sample);
	write_part(out, &separator, "writes", event->writes);
	write_part(out, &separator, "filtered", event->is_filtered ? "yes" : NULL);
}

static int decode(const char *text, size_t size, char **ret)
{
	char *decoded = malloc(size + 1), *to = decoded;

	if (!decoded)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '%') {
			int high = size - i > 2 ? kymo_hex_digit(text[i + 1]) : -1;
			int low = size - i > 2 ? kymo_hex_digit(text[i + 2]) : -1;

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

	if (strncmp(text, "0x", 2) || kymo_hex_digit(text[2]) < 0)
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 16);
	if (errno || *end)
		return -EINVAL;
	*ret = value;
	return 0;
}

/* Kinds that are not known say nothing that this kymo could use. */
static enum kymo_ctf_kind parse_kind(const char *text)
{
	for (size_t i = 0; i < kymo_countof(kinds); i++)
		if (!strcmp(text, kinds[i]))
			return (enum kymo_ctf_kind)i;
	return KYMO_CTF_PLACE;
}

static bool is_key(const char *part, size_t length, const char *key)
{
	return length == strlen(key) && !memcmp(part, key, length);
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
	if (is_key(part, length, "offset"))
		err = parse_offset(value, &event->offset);
	else if (is_key(part, length, "function"))
		err = parse_offset(value, &event->function_offset);
	else if (is_key(part, length, "kind"))
		event->kind = parse_kind(value);
	else if (is_key(part, length, "filtered"))
		event->is_filtered = true;
	else if (is_key(part, length, "symbol"))
		slot = &event->symbol;
	else if (is_key(part, length, "build-id"))
		slot = &event->build_id;
	else if (is_key(part, length, "source"))
		slot = &event->source;
	else if (is_key(part, length, "format"))
		slot = &event->format;
	else if (is_key(part, length, "sample"))
		slot = &event->sample;
	else if (is_key(part, length, "writes"))
		slot = &event->writes;
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
