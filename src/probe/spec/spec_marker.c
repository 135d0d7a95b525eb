/*
 * Each location of an SDT probe has its arguments in registers and memory of its own. So a spec is parsed twice: for
 * what is wrong with its words, and then for each location by the operands of that.
 */
#include "probe/spec/spec_marker.h"

#include <stdlib.h>
#include <string.h>

#include "probe/spec/spec_piece.h"
#include "probe/spec/spec_values.h"

static struct kymo_error *parse(const char *text, struct kymo_spec *spec)
{
	const char *behind = text + strcspn(text, " \t");
	struct kymo_error *error;

	spec->text = strdup(text);
	spec->marker = strndup(text, (size_t)(behind - text));
	error = spec->text && spec->marker ? kymo_spec_values_parse(text, behind, spec) : &kymo_error_no_memory;
	if (error)
		kymo_spec_deinit(spec);
	return error;
}

/* What aggregations ask for, which is no part of the text. */
static struct kymo_error *add_values(const struct kymo_spec *spec, struct kymo_spec *own)
{
	struct kymo_error *error = NULL;
	size_t at;

	for (size_t i = 0; i < spec->n_values && !error; i++)
		error = kymo_spec_add_value(own, spec->values[i].text, spec->values[i].text + spec->values[i].start,
					    spec->values[i].text + spec->values[i].end, &at);
	if (error)
		kymo_spec_deinit(own);
	return error;
}

struct kymo_error *kymo_spec_parse_marker(const char *text, struct kymo_spec *ret)
{
	const size_t size = strcspn(text, " \t");
	struct kymo_spec spec = { .text = NULL };
	struct kymo_error *error;

	if (!size || text[size - 1] == ':')
		return kymo_error_create(
			KYMO_ERROR_USAGE,
			"'%s' names no marker; write a name or a glob, such as 'request_*' or 'libc:*'", text);
	if (strlen(text) > KYMO_SPEC_TEXT_MAX)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "a marker is written in at most %d characters, this one has %zu",
					 KYMO_SPEC_TEXT_MAX, strlen(text));
	error = parse(text, &spec);
	if (!error)
		*ret = spec;
	return error;
}

struct kymo_error *kymo_spec_at_operands(const struct kymo_spec *spec, const struct kymo_fetch *operands, size_t n,
					 struct kymo_spec *ret)
{
	struct kymo_spec own = { .operands = operands, .n_operands = n };
	struct kymo_error *error = parse(spec->text, &own);

	if (!error)
		error = add_values(spec, &own);
	own.operands = NULL;
	if (!error)
		*ret = own;
	return error;
}
