#include "cli/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "cli/debug_files.h"
#include "cli/modules.h"
#include "cli/numbers.h"
#include "cli/source_pattern.h"
#include "probe/code/missing.h"
#include "probe/spec/spec.h"
#include "sym/debug.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/module.h"
#include "sym/sym.h"

#define LINE_MAX_NUMBER 10000000

/* ---- words ----------------------------------------------------------------------------------- */

static bool parse_number(const char *text, size_t length, struct cli_source_line *ret)
{
	kymo_cleanup_free char *copy = strndup(text, length);
	char *colon = copy ? strrchr(copy, ':') : NULL;
	const char *middle;
	uint64_t line;

	if (!colon || !cli_parse_number(colon + 1, &line) || line > LINE_MAX_NUMBER)
		return false;
	*colon = '\0';
	middle = kymo_spec_file_end(copy);
	if (!middle || middle == copy || !middle[1] || !access(copy, F_OK))
		return false;
	*ret = (struct cli_source_line){ strndup(copy, (size_t)(middle - copy)), strdup(middle + 1),
					 .line = (unsigned int)line };
	if (ret->file && ret->source)
		return true;
	cli_source_line_deinit(ret);
	return false;
}

static bool is_name(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *text && (*text < '0' || *text > '9') && strspn(text, letters) == strlen(text);
}

/* No file is called as what is before the label, and no namespace ends there. */
static bool parse_label(const char *text, size_t length, struct cli_source_line *ret)
{
	kymo_cleanup_free char *copy = strndup(text, length);
	char *colon = copy ? strrchr(copy, ':') : NULL;
	const char *middle;

	if (!colon || colon == copy || colon[-1] == ':' || colon[-1] == '\\' || !is_name(colon + 1))
		return false;
	*colon = '\0';
	middle = kymo_spec_file_end(copy);
	if (!middle || middle == copy || !is_name(middle + 1) || !access(copy, F_OK))
		return false;
	*ret = (struct cli_source_line){ strndup(copy, (size_t)(middle - copy)), strdup(middle + 1),
					 .label = strdup(colon + 1) };
	if (ret->file && ret->source && ret->label)
		return true;
	cli_source_line_deinit(ret);
	return false;
}

/* `length` bytes, of which `at` are before the slash. */
static bool parse_pattern(const char *text, size_t length, size_t at, struct cli_source_line *ret)
{
	kymo_cleanup_free char *copy = strndup(text, at - 1);
	const char *middle = copy ? kymo_spec_file_end(copy) : NULL;

	if (!middle || middle == copy || !middle[1])
		return false;
	*ret = (struct cli_source_line){ strndup(copy, (size_t)(middle - copy)), strdup(middle + 1),
					 .pattern = strndup(text + at + 1, length - at - 2) };
	if (ret->file && ret->source && ret->pattern)
		return true;
	cli_source_line_deinit(ret);
	return false;
}

bool cli_source_line_parse(const char *text, size_t length, struct cli_source_line *ret)
{
	size_t at;

	if (cli_source_pattern_size(text, &at) == length)
		return parse_pattern(text, length, at, ret);
	return parse_number(text, length, ret) || parse_label(text, length, ret);
}

void cli_source_line_deinit(struct cli_source_line *line)
{
	free(line->file);
	free(line->source);
	free(line->pattern);
	free(line->label);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct kymo_error *take_lines(struct cli_source *source, const struct kymo_source_line *lines, size_t n,
				     const char *function)
{
	for (size_t i = 0; i < n; i++) {
		const bool is_in = !function || (lines[i].function && !strcmp(lines[i].function, function)) ||
				   (lines[i].inlined && !strcmp(lines[i].inlined, function));

		if (is_in && !kymo_vec_push(&source->places, lines[i].vaddr))
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* `wanted` lines of `file`; of `function` alone, if it is not NULL. */
static struct kymo_error *find_line(struct cli_source *source, const char *file, unsigned int wanted,
				    const char *function)
{
	const struct kymo_source_line *lines;
	struct kymo_error *error;
	size_t n;

	error = kymo_debug_lines(source->debug, file, wanted, &lines, &n);
	if (!error)
		error = take_lines(source, lines, n, function);
	if (error)
		return error;
	if (!source->places.n && function)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s:%u is after the end of %s; 'kymo list --lines %s:%s' shows its lines",
					 basename(file), wanted, function, kymo_module_path(source->module), function);
	if (!n)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no code of %s at line %u or after it",
					 kymo_module_path(source->module), file, wanted);
	if (asprintf(&source->shown, "%s:%u", basename(lines[0].file), lines[0].line) < 0) {
		source->shown = NULL;
		return &kymo_error_no_memory;
	}
	if (lines[0].line != wanted &&
	    asprintf(&source->note, "%s:%u has no code; line %u is taken", basename(file), wanted, lines[0].line) < 0)
		source->note = NULL;
	return NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Where it is inlined, so many bytes farther on; `n_ret`: in how many places. */
static struct kymo_error *take_instances(struct cli_source *source, const char *name, int64_t offset, size_t *n_ret)
{
	const struct kymo_instance *instances = NULL;
	struct kymo_error *error = kymo_debug_instances(source->debug, name, strlen(name), &instances, n_ret);

	for (size_t i = 0; !error && i < *n_ret; i++)
		if (!kymo_vec_push(&source->places, instances[i].vaddr + (uint64_t)offset))
			error = &kymo_error_no_memory;
	return error;
}

/* The function's own entries; where there are none, what it is inlined into. */
static struct kymo_error *find_function(struct cli_source *source, const char *name, int64_t offset)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct kymo_error *error;
	size_t n;

	error = kymo_module_find(source->module, name, &found, &n);
	for (size_t i = 0; !error && i < n; i++)
		if (!kymo_vec_push(&source->places, found[i]->vaddr + (uint64_t)offset))
			error = &kymo_error_no_memory;
	if (error || n)
		return error;
	error = take_instances(source, name, offset, &n);
	return error || n ? error : kymo_no_such_function(source->module, kymo_module_path(source->module), name);
}

/* "work:3": so many lines after the one that the function begins with. */
static struct kymo_error *find_line_of_function(struct cli_source *source, const char *name, unsigned int lines,
						bool *is_function_ret)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct kymo_error *error;
	struct kymo_source_line first;
	size_t n;

	*is_function_ret = false;
	error = kymo_module_find(source->module, name, &found, &n);
	if (error || !n)
		return error;
	*is_function_ret = true;
	if (!kymo_debug_line_of(source->debug, found[0]->vaddr, &first))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "the debug information of %s has no lines of %s",
					 kymo_module_path(source->module), name);
	return find_line(source, first.file, first.line + lines, first.function);
}

/* ---- labels ---------------------------------------------------------------------------------- */

#define LISTED_MAX 256

static struct kymo_error *refuse_label(const char *function, const char *label, const struct kymo_label *labels,
				       size_t n)
{
	const char *names[LISTED_MAX];
	char near[KYMO_NEAREST_MAX];

	n = n < LISTED_MAX ? n : LISTED_MAX;
	for (size_t i = 0; i < n; i++) {
		names[i] = labels[i].name;
		if (!strcmp(names[i], label))
			return kymo_error_create(KYMO_ERROR_NOT_FOUND,
						 "the compiler has left no code at the label '%s' of %s; write a line",
						 label, function);
	}
	kymo_nearest_list(label, strlen(label), names, n, near);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no label '%s'%s%s", function, label,
				 *near ? "; it has: " : "", near);
}

/* Once, although a function may have several names. */
static bool take_place(struct cli_source *source, uint64_t vaddr)
{
	for (size_t i = 0; i < source->places.n; i++)
		if (source->places.items[i] == vaddr)
			return true;
	return kymo_vec_push(&source->places, vaddr);
}

/* A place of each label of that name in the function that holds `vaddr`. */
static struct kymo_error *take_labels(struct cli_source *source, uint64_t vaddr, const char *function,
				      const char *label)
{
	const struct kymo_label *labels;
	bool has_any = false;
	size_t n;
	struct kymo_error *error = kymo_debug_labels(source->debug, vaddr, &labels, &n);

	for (size_t i = 0; !error && i < n; i++) {
		if (!labels[i].has_address || strcmp(labels[i].name, label) != 0)
			continue;
		has_any = true;
		if (!take_place(source, labels[i].vaddr))
			error = &kymo_error_no_memory;
	}
	return error || has_any ? error : refuse_label(function, label, labels, n);
}

static struct kymo_error *find_label(struct cli_source *source, const char *function, const char *label)
{
	struct cli_source entries = { .module = source->module, .debug = source->debug };
	struct kymo_error *error = find_function(&entries, function, 0);

	for (size_t i = 0; !error && i < entries.places.n; i++)
		error = take_labels(source, entries.places.items[i], function, label);
	kymo_vec_deinit(&entries.places);
	if (!error && asprintf(&source->shown, "%s:%s", function, label) < 0) {
		source->shown = NULL;
		error = &kymo_error_no_memory;
	}
	return error;
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct kymo_error *open_file(struct cli_source *source, const char *file)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(file, &path);

	return error ? error : cli_module(path, &source->module);
}

static struct kymo_error *open_source_file(struct cli_source *source, const char *file)
{
	struct kymo_error *error = open_file(source, file);

	return error ? error : cli_debug_open(source->module, &source->debug);
}

static struct kymo_error *find_source_line(const struct cli_source_line *line, struct cli_source *source)
{
	struct kymo_error *error = open_source_file(source, line->file);
	unsigned int number = line->line;
	bool is_function = false;

	if (!error && line->label)
		return find_label(source, line->source, line->label);
	if (!error && line->pattern)
		error = cli_source_pattern_find(source->debug, line->source, line->pattern, &number);
	else if (!error)
		error = find_line_of_function(source, line->source, line->line, &is_function);
	return error || is_function ? error : find_line(source, line->source, number, NULL);
}

static struct kymo_error *find_place(const char *text, struct cli_source *source)
{
	kymo_cleanup(kymo_spec_deinit) struct kymo_spec spec = { 0 };
	struct kymo_error *error = kymo_spec_parse(text, &spec);
	uint64_t vaddr;

	if (error)
		return error;
	if (spec.n_args || spec.event || spec.filter || !spec.file || spec.every_instruction || spec.is_return)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "'%s' is no location; write FILE:FUNCTION, FILE:FUNCTION+OFFSET or "
					 "FILE:SOURCE:LINE",
					 text);
	error = open_source_file(source, spec.file);
	if (error || spec.symbol)
		return error ? error : find_function(source, spec.symbol, spec.offset);
	if (kymo_module_offset_to_vaddr(source->module, (uint64_t)spec.offset, &vaddr))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no code at file offset 0x%llx",
					 kymo_module_path(source->module), (unsigned long long)spec.offset);
	return kymo_vec_push(&source->places, vaddr) ? NULL : &kymo_error_no_memory;
}

/* Only where a file has no such function is its debug information opened. */
static struct kymo_error *find_inlined(struct cli_source *source, const char *file, const char *function)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct kymo_error *error = open_file(source, file);
	size_t n = 0;

	if (!error)
		error = kymo_module_find(source->module, function, &found, &n);
	if (error || n)
		return error;
	error = cli_debug_open(source->module, &source->debug);
	if (!error)
		error = take_instances(source, function, 0, &n);
	if (!error && !(source->shown = strdup(function)))
		error = &kymo_error_no_memory;
	return error;
}

struct kymo_error *cli_source_find_inlined(const char *file, const char *function, struct cli_source *ret)
{
	struct cli_source source = { .module = NULL };
	struct kymo_error *error = find_inlined(&source, file, function);

	if (error) {
		cli_source_deinit(&source);
		if (error->code == KYMO_ERROR_NO_MEMORY)
			return error;
		kymo_error_destroy(error); /* it is told when the function is looked for */
		source = (struct cli_source){ .module = NULL };
	}
	*ret = source;
	return NULL;
}

struct kymo_error *cli_source_find(const char *text, struct cli_source *ret)
{
	struct cli_source source = { .module = NULL };
	struct cli_source_line line;
	struct kymo_error *error;

	if (cli_source_line_parse(text, strlen(text), &line)) {
		error = find_source_line(&line, &source);
		cli_source_line_deinit(&line);
	} else {
		error = find_place(text, &source);
	}
	if (error)
		cli_source_deinit(&source);
	else
		*ret = source;
	return error;
}

void cli_source_deinit(struct cli_source *source)
{
	kymo_debug_close(source->debug);
	kymo_vec_deinit(&source->places);
	free(source->note);
	free(source->shown);
	*source = (struct cli_source){ .module = NULL };
}
