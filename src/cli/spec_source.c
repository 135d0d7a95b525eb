/*
 * A line becomes offsets in the file, as if the user had written these: "./app:0x1234". What is recorded has the name
 * of the line, and only a file of the same build is probed there.
 */
#include "cli/spec_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/source.h"
#include "cli/source_pattern.h"
#include "probe/spec/spec_marker.h"
#include "sym/module.h"

typedef struct kymo_error *parse_spec(const char *text, struct kymo_spec *ret);

/* The word at `text`, or after a prefix such as "p:name". */
static const char *find_location(const char *text, size_t *length_ret)
{
	size_t length, pattern, at;

	text += strspn(text, " \t");
	length = strcspn(text, " \t");
	if ((*text == 'p' || *text == 'r') && (length == 1 || text[1] == ':') && text[length]) {
		text += length;
		text += strspn(text, " \t");
		length = strcspn(text, " \t");
	}
	pattern = cli_source_pattern_size(text, &at);
	*length_ret = pattern ? pattern : length;
	return text;
}

static struct kymo_error *name_spec(const struct cli_source *source, const char *typed, struct kymo_spec *spec)
{
	const uint8_t *bytes;
	size_t size;

	spec->source = strdup(source->shown);
	spec->typed = strdup(typed);
	if (!spec->source || !spec->typed)
		return &kymo_error_no_memory;
	bytes = kymo_module_build_id(source->module, &size);
	for (size_t i = 0; i < size && 2 * i + 2 < sizeof(spec->build_id); i++)
		snprintf(spec->build_id + 2 * i, 3, "%02x", bytes[i]);
	return NULL;
}

static struct kymo_error *add_spec(const char *text, const char *typed, parse_spec *parse,
				   const struct cli_source *source, struct cli_specs *specs)
{
	struct kymo_error *error;
	struct kymo_spec spec;

	error = parse(text, &spec);
	if (error)
		return kymo_error_retell(error, text, typed);
	if (spec.is_return)
		error = kymo_error_create(KYMO_ERROR_USAGE,
					  "a return probe is for a whole function; record a line of source with -p");
	spec.shares_sample = specs->items.n;
	if (!error)
		error = name_spec(source, typed, &spec);
	if (!error && kymo_vec_push(&specs->items, spec))
		return NULL;
	kymo_spec_deinit(&spec);
	return error ? error : &kymo_error_no_memory;
}

/* The text with an offset in the file in the place of the line. */
static struct kymo_error *add_offset(const char *text, const char *location, size_t length, const char *file,
				     uint64_t vaddr, parse_spec *parse, const struct cli_source *source,
				     struct cli_specs *specs)
{
	kymo_cleanup_free char *rewritten = NULL;
	uint64_t offset;

	if (kymo_module_vaddr_to_offset(source->module, vaddr, &offset))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s of %s is at 0x%" PRIx64 ", where the file has no code", source->shown,
					 file, vaddr);
	if (asprintf(&rewritten, "%.*s%s:0x%" PRIx64 "%s", (int)(location - text), text, file, offset,
		     location + length) < 0) {
		rewritten = NULL;
		return &kymo_error_no_memory;
	}
	return add_spec(rewritten, text, parse, source, specs);
}

static struct kymo_error *parse_line(const char *text, const char *location, size_t length, const char *file,
				     parse_spec *parse, struct cli_specs *specs)
{
	kymo_cleanup(cli_source_deinit) struct cli_source source = { 0 };
	kymo_cleanup_free char *copy = strndup(location, length);
	struct kymo_error *error = copy ? cli_source_find(copy, &source) : &kymo_error_no_memory;

	if (!error && source.note)
		cli_warn("%s", source.note);
	for (size_t i = 0; !error && i < source.places.n; i++)
		error = add_offset(text, location, length, file, source.places.items[i], parse, &source, specs);
	return error;
}

struct kymo_error *cli_specs_parse(const char *text, parse_spec *parse, struct cli_specs *ret)
{
	struct cli_specs specs = { 0 };
	struct cli_source_line line;
	struct kymo_error *error;
	struct kymo_spec spec;
	const char *location;
	size_t length;

	location = find_location(text, &length);
	if (parse != kymo_spec_parse_marker && cli_source_line_parse(location, length, &line)) {
		error = parse_line(text, location, length, line.file, parse, &specs);
		cli_source_line_deinit(&line);
	} else {
		error = parse(text, &spec);
		if (!error && !kymo_vec_push(&specs.items, spec)) {
			kymo_spec_deinit(&spec);
			error = &kymo_error_no_memory;
		}
	}
	if (error)
		cli_specs_deinit(&specs);
	else
		*ret = specs;
	return error;
}

void cli_specs_deinit(struct cli_specs *specs)
{
	for (size_t i = 0; i < specs->items.n; i++)
		kymo_spec_deinit(&specs->items.items[i]);
	kymo_vec_deinit(&specs->items);
}
