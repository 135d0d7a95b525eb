/* What a printf format says about the arguments that a marker hands over. Reference: printf(3). */
#include "marker/format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "marker/fields.h"

/* Only the layouts are wanted of it. */
#define KYMO_NO_MARKERS
#define KYMO_NO_MARK
#include "kymo/marker.h"

/* Not isalpha(): what is a name must not depend on the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

static const char *skip_blanks_back(const char *start, const char *end)
{
	while (end > start && end[-1] == ' ')
		end--;
	return end;
}

/* The name in front of a conversion at `end`, in text that begins at `start`: "fd=", "mode=0x", "req->path = '" */
static void find_conversion_name(const char *start, const char *end, struct marker_conversion *ret)
{
	const char *name;

	if (end - start >= 3 && end[-3] == '=' && end[-2] == '0' && (end[-1] == 'x' || end[-1] == 'X'))
		end -= 2;
	while (end > start && strchr("\"'([{<", end[-1]))
		end--;
	end = skip_blanks_back(start, end);
	if (end == start || end[-1] != '=')
		return;
	end = skip_blanks_back(start, end - 1);
	for (name = end; name > start && is_name_char(name[-1]);)
		name--;
	/* A letter before it that is not ASCII is part of the word. */
	if (name == end || is_digit(*name) || (name > start && (unsigned char)name[-1] >= 0x80) ||
	    end - name > KYMO_MARKER_FIELD_NAME_MAX)
		return;
	ret->name = name;
	ret->name_length = (size_t)(end - name);
}

/* Past a width or a precision at `at`; where it is an argument it is counted. */
static const char *skip_number(const char *at, struct marker_conversion *ret, size_t *n, size_t max)
{
	if (*at != '*')
		return at + strspn(at, "0123456789");
	if (*n < max)
		ret[(*n)++] = (struct marker_conversion){ .letter = '*' };
	return at + 1;
}

size_t kymo_marker_parse_format(const char *format, struct marker_conversion *ret, size_t max)
{
	const char *text = format, *at = format;
	size_t n = 0;

	while (n < max && (at = strchr(at, '%'))) {
		struct marker_conversion conversion = { 0 };
		const char *begin = at++;

		at += strspn(at, " #+-0'I");
		at = skip_number(at, ret, &n, max);
		if (*at == '$')
			return 0;
		conversion.has_precision = *at == '.';
		if (*at == '.')
			at = skip_number(at + 1, ret, &n, max);
		at += strspn(at, "hlLqjzt");
		if (!*at)
			break;
		conversion.letter = *at++;
		if (conversion.letter != '%' && conversion.letter != 'm' && n < max) {
			find_conversion_name(text, begin, &conversion);
			ret[n++] = conversion;
		}
		text = at;
	}
	return n;
}

static bool is_taken_name(const struct kymo_marker_fields *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(fields->names[i], name))
			return true;
	return false;
}

void kymo_marker_make_names(const struct marker_conversion *conversions, size_t n, struct kymo_marker_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		char *name = fields->names[i];
		size_t size = sizeof(fields->names[i]);
		int length =
			i < n && conversions[i].name
				? snprintf(name, size, "%.*s", (int)conversions[i].name_length, conversions[i].name)
				: 0;

		if (!length || is_taken_name(fields, i, name))
			length = snprintf(name, size, "arg%zu", i + 1);
		while (is_taken_name(fields, i, name)) {
			name[length++] = '_';
			name[length] = '\0';
		}
	}
}

/* ---- all fields ------------------------------------------------------------------------------ */

static const enum kymo_type types[] = {
	[KYMO_MARKER_S32] = KYMO_TYPE_S32,       [KYMO_MARKER_U32] = KYMO_TYPE_U32,
	[KYMO_MARKER_S64] = KYMO_TYPE_S64,       [KYMO_MARKER_U64] = KYMO_TYPE_U64,
	[KYMO_MARKER_POINTER64] = KYMO_TYPE_X64, [KYMO_MARKER_F64] = KYMO_TYPE_F64,
	[KYMO_MARKER_STRING] = KYMO_TYPE_STRING, [KYMO_MARKER_POINTER32] = KYMO_TYPE_X32,
};

static bool read_types(uint32_t codes, struct kymo_marker_fields *fields)
{
	for (; codes; codes >>= 4) {
		uint32_t code = codes & 15;

		if (!code || code >= kymo_countof(types))
			return false;
		fields->types[fields->n++] = types[code];
	}
	return true;
}

static bool wants_hex(char letter)
{
	return letter == 'x' || letter == 'X' || letter == 'p';
}

/* Integers that the format prints in hex are hex everywhere. */
static void apply_conversions(const struct marker_conversion *conversions, size_t n, struct kymo_marker_fields *fields)
{
	for (size_t i = 0; i < n; i++) {
		enum kymo_type *type = &fields->types[i];

		if (!wants_hex(conversions[i].letter))
			continue;
		if (*type == KYMO_TYPE_S32 || *type == KYMO_TYPE_U32)
			*type = KYMO_TYPE_X32;
		else if (*type == KYMO_TYPE_S64 || *type == KYMO_TYPE_U64)
			*type = KYMO_TYPE_X64;
	}
}

/* The cold block copies whatever is a char * up to its NUL: one that need not have any would be read too far. */
static const char *find_why_not(const struct marker_conversion *conversions, size_t n,
				const struct kymo_marker_fields *fields)
{
	for (size_t i = 0; i < fields->n; i++) {
		if (fields->types[i] != KYMO_TYPE_STRING)
			continue;
		if (i >= n || conversions[i].letter != 's')
			return "it has a char * that its format does not print with %s, and that may be no string; the "
			       "address alone is recorded of (void *)";
		if (conversions[i].has_precision)
			return "it has a char * with a precision, which may have no NUL";
	}
	return NULL;
}

int kymo_marker_fields(uint32_t codes, const char *format, struct kymo_marker_fields *ret)
{
	struct marker_conversion conversions[KYMO_EVENT_MAX_ARGS];
	struct kymo_marker_fields fields = { .n = 0 };
	size_t n;

	if (!read_types(codes, &fields))
		return -EINVAL;
	n = kymo_marker_parse_format(format, conversions, fields.n);
	apply_conversions(conversions, n, &fields);
	kymo_marker_make_names(conversions, n, &fields);
	fields.why_not = find_why_not(conversions, n, &fields);
	*ret = fields;
	return 0;
}
