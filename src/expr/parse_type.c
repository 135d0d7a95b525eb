/* Types in a text: those of integers, those of the source, and the "*"s after them. */
#include "expr/parse_type.h"

#include <string.h>

#include "expr/typename.h"

bool expr_close_type(struct expr_reader *reader)
{
	if (!expr_next_is(reader, ")"))
		return expr_fail(reader, reader->at, "expected ')' after the type");
	reader->at++;
	return true;
}

static void skip_qualifiers(struct expr_reader *reader)
{
	do
		expr_skip_blanks(reader);
	while (expr_skip_word(reader, "const") || expr_skip_word(reader, "volatile"));
}

static void read_stars(struct expr_reader *reader, struct kymo_expr_type *type)
{
	for (unsigned int n = 0; n < EXPR_DEPTH_MAX && expr_next_is(reader, "*"); n++) {
		*type = expr_type_pointer(*type);
		reader->at++;
		skip_qualifiers(reader);
	}
}

/* Whether what stands in brackets that close before `at` is a type rather than a value, by what comes next. */
static bool begins_operand(const struct expr_reader *reader, const char *at)
{
	while (at < reader->tree->source.end && expr_is_blank(*at))
		at++;
	return at < reader->tree->source.end &&
	       (expr_is_letter(*at) || expr_is_digit(*at) || strchr("($'~", *at) != NULL);
}

/* Whether the name that ends before `at` is one of a type: "*"s and the bracket are after it, and then an operand. */
static bool is_type_in_brackets(const struct expr_reader *reader, const char *at, bool has_tag, bool is_cast)
{
	const char *end = reader->tree->source.end;
	bool has_star = false;

	for (; at < end && (*at == '*' || expr_is_blank(*at)); at++)
		has_star |= *at == '*';
	if (has_tag)
		return true;
	if (at >= end || *at != ')')
		return false;
	return has_star || !is_cast || begins_operand(reader, at + 1);
}

static bool is_variable(const struct expr_reader *reader, const char *at, const char *end)
{
	const struct kymo_expr_names *names = reader->tree->names;
	struct kymo_expr_meaning meaning;
	struct kymo_error *error =
		names->find(names->data, reader->tree->source.text, at, (size_t)(end - at), &meaning);

	kymo_error_destroy(error);
	return !error;
}

static bool refuse_unknown(struct expr_reader *reader, const char *at, const char *end)
{
	const struct kymo_expr_names *names = reader->tree->names;
	const int size = (int)(end - at);
	const char *near = names->near_type ? names->near_type(names->data, at, (size_t)(end - at)) : NULL;

	if (names->lacks_types)
		return expr_fail(reader, at, "there is no type '%.*s': %s", size, at, names->lacks_types);
	if (!names->type)
		return expr_fail(reader, at,
				 "there is no type '%.*s'; write that of an integer, such as (int)arg0 or (long *)arg0",
				 size, at);
	return expr_fail(
		reader, at,
		"there is no type '%.*s' in the debug information%s%s%s; --types FILE reads those of FILE, too", size,
		at, near ? ", and the nearest is '" : "", near ? near : "", near ? "'" : "");
}

/* A type of the source at the reader. False: there is none, or an error. */
static bool read_source_type(struct expr_reader *reader, bool is_cast, struct kymo_expr_type *ret)
{
	const struct kymo_expr_names *names = reader->tree->names;
	const struct kymo_ctype *ctype = NULL;
	const char *at = reader->at, *end;
	bool has_tag, is_certain;

	if (!expr_find_type_name(at, reader->tree->source.end, &end, &has_tag) ||
	    !is_type_in_brackets(reader, end, has_tag, is_cast))
		return false;
	is_certain = has_tag || end[strspn(end, " \t")] == '*';
	if (!is_cast && !is_certain && is_variable(reader, at, end))
		return false;
	if (names->type)
		reader->error = names->type(names->data, at, (size_t)(end - at), &ctype);
	if (reader->error)
		return false;
	if (!ctype && !is_certain)
		return false;
	if (!ctype)
		return refuse_unknown(reader, at, end);
	reader->tree->is_later |= ctype == &kymo_expr_later;
	*ret = kymo_expr_type_of(ctype);
	reader->at = end;
	return true;
}

/* The type at the reader, up to the bracket that closes it. False: there is none, and the reader is where it was. */
bool expr_read_any_type(struct expr_reader *reader, bool is_cast, struct kymo_expr_type *ret)
{
	const char *start = expr_skip_blanks(reader), *behind;

	skip_qualifiers(reader);
	behind = expr_read_type(reader->at, reader->tree->source.end, ret);
	if (behind)
		reader->at = behind;
	else if (!read_source_type(reader, is_cast, ret)) {
		reader->at = start;
		return false;
	}
	skip_qualifiers(reader);
	read_stars(reader, ret);
	return true;
}
