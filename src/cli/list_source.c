#include "cli/list_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/fetch.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/debug_files.h"
#include "cli/output.h"
#include "cli/source.h"
#include "sym/debug.h"
#include "sym/demangle.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "wire/ctype.h"

#define RSP 7 /* by DWARF's numbers */
#define RBP 6

/* ---- where a variable is --------------------------------------------------------------------- */

static const char *register_name(int64_t dwarf)
{
	const int number = kymo_register_of_dwarf((int)dwarf);

	return number < 0 ? "?" : kymo_register_name(number);
}

/* "register + constant", as memory is addressed. */
static bool is_based(const struct kymo_form *form, int64_t *offset_ret)
{
	if (form->ops[0].code != KYMO_FORM_REGISTER)
		return false;
	*offset_ret = 0;
	if (form->n == 1)
		return true;
	*offset_ret = form->ops[1].value;
	return form->n == 3 && form->ops[1].code == KYMO_FORM_VALUE && form->ops[2].code == KYMO_FORM_ADD;
}

/* The program's own are at a distance from the thread pointer that its file tells. */
static void tell_thread_local(const struct kymo_form *form, char *out, size_t size)
{
	if (form->n == 3 && form->ops[1].code == KYMO_FORM_VALUE)
		snprintf(out, size, "thread-local, at the thread pointer-0x%" PRIx64, 0 - (uint64_t)form->ops[1].value);
	else
		snprintf(out, size, "thread-local, where its library has them in each thread");
}

static void tell_memory(const struct kymo_form *form, char *out, size_t size)
{
	int64_t offset;

	if (form->n == 1 && form->ops[0].code == KYMO_FORM_ADDRESS)
		snprintf(out, size, "static, at 0x%" PRIx64, form->ops[0].value);
	else if (form->ops[0].code == KYMO_FORM_THREAD)
		tell_thread_local(form, out, size);
	else if (is_based(form, &offset))
		snprintf(out, size, "%s, at %%%s%c0x%" PRIx64,
			 form->ops[0].value == RSP || form->ops[0].value == RBP ? "stack" : "memory",
			 register_name(form->ops[0].value), offset < 0 ? '-' : '+',
			 offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset);
	else
		snprintf(out, size, "memory, at an address that is computed");
}

static void tell_location(const struct kymo_location *location, char *out, size_t size)
{
	const struct kymo_form *form = &location->form;

	if (location->kind == KYMO_LOCATION_NOWHERE)
		snprintf(out, size, "%s", location->why);
	else if (location->kind == KYMO_LOCATION_MEMORY)
		tell_memory(form, out, size);
	else if (form->n == 1 && form->ops[0].code == KYMO_FORM_VECTOR)
		snprintf(out, size, "register, %%xmm%" PRId64, form->ops[0].value);
	else if (form->n == 1 && form->ops[0].code == KYMO_FORM_REGISTER)
		snprintf(out, size, "register, %%%s", register_name(form->ops[0].value));
	else if (form->n == 1 && form->ops[0].code == KYMO_FORM_VALUE)
		snprintf(out, size, "constant, %" PRId64, form->ops[0].value);
	else
		snprintf(out, size, "computed, of %u operations", form->n);
}

/* ---- variables ------------------------------------------------------------------------------- */

/* "./app:work+0x12  0x1162  app.c:14" */
static void print_place(const struct cli_source *source, uint64_t vaddr)
{
	struct kymo_source_line line = { .function = NULL };
	char name[512];

	kymo_module_describe(source->module, vaddr, name, sizeof(name));
	kymo_utf8_print(stdout, kymo_module_path(source->module));
	putchar(':');
	kymo_print_shown(stdout, name);
	printf("  0x%" PRIx64, vaddr);
	if (kymo_debug_line_of(source->debug, vaddr, &line)) {
		fputs("  ", stdout);
		kymo_utf8_print(stdout, basename(line.file));
		printf(":%u", line.line);
	}
	if (line.inlined) {
		fputs("  in ", stdout);
		kymo_utf8_print(stdout, line.inlined);
		fputs(", inlined", stdout);
	}
	putchar('\n');
}

static size_t longest(const struct kymo_variable *variables, size_t n, bool of_types)
{
	size_t longest = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t size = strlen(of_types ? variables[i].declared_type : variables[i].name);

		longest = size > longest && size <= 32 ? size : longest;
	}
	return longest;
}

static void print_padded(const char *text, size_t width)
{
	kymo_utf8_print(stdout, text);
	printf("%*s  ", (int)(strlen(text) < width ? width - strlen(text) : 0), "");
}

static void print_variables(const struct kymo_variable *variables, size_t n)
{
	const size_t names = longest(variables, n, false), types = longest(variables, n, true);
	char where[768];

	for (size_t i = 0; i < n; i++) {
		tell_location(&variables[i].location, where, sizeof(where));
		fputs("  ", stdout);
		print_padded(variables[i].name, names);
		print_padded(variables[i].declared_type, types);
		kymo_utf8_print(stdout, where);
		if (variables[i].inlined) {
			fputs("  (of ", stdout);
			kymo_utf8_print(stdout, variables[i].inlined);
			putchar(')');
		}
		putchar('\n');
	}
	if (!n)
		puts("  no variables");
}

static void print_variables_json(const struct kymo_variable *variables, size_t n)
{
	static const char *const kinds[] = { "nowhere", "value", "memory" };
	char where[768];

	for (size_t i = 0; i < n; i++) {
		tell_location(&variables[i].location, where, sizeof(where));
		fputs(i ? ",\n  {\"name\": " : "\n  {\"name\": ", stdout);
		kymo_json_string(stdout, variables[i].name);
		fputs(", \"type\": ", stdout);
		kymo_json_string(stdout, variables[i].declared_type);
		printf(", \"size\": %" PRIu64 ", \"parameter\": %s, \"static\": %s, \"depth\": %u, \"inlined\": ",
		       variables[i].type->size, variables[i].is_parameter ? "true" : "false",
		       variables[i].is_static ? "true" : "false", variables[i].depth);
		kymo_json_string(stdout, variables[i].inlined);
		printf(", \"kind\": \"%s\", \"where\": ", kinds[variables[i].location.kind]);
		kymo_json_string(stdout, where);
		putchar('}');
	}
}

static struct kymo_error *list_vars_at(const struct cli_source *source, size_t i, bool json)
{
	const uint64_t vaddr = source->places.items[i];
	const struct kymo_variable *variables;
	struct kymo_error *error;
	size_t n;

	error = kymo_debug_variables(source->debug, vaddr, &variables, &n);
	if (error)
		return error;
	if (!json) {
		print_place(source, vaddr);
		print_variables(variables, n);
		return NULL;
	}
	printf("%s\n {\"vaddr\": %" PRIu64 ", \"variables\": [", i ? "," : "[", vaddr);
	print_variables_json(variables, n);
	printf("%s]}", n ? "\n " : "");
	return NULL;
}

static struct kymo_error *find_source(const char *location, struct cli_source *ret)
{
	struct kymo_error *error = cli_source_find(location, ret);

	return error ? error : cli_debug_files_check();
}

struct kymo_error *cli_list_vars(const char *location, bool json)
{
	kymo_cleanup(cli_source_deinit) struct cli_source source = { 0 };
	struct kymo_error *error = find_source(location, &source);

	if (error)
		return error;
	if (source.note)
		cli_warn("%s", source.note);
	for (size_t i = 0; !error && i < source.places.n; i++)
		error = list_vars_at(&source, i, json);
	if (json && !error)
		puts("\n]");
	return error;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A source file that is there, read line by line. */
struct text {
	FILE *file;
	const char *path;
	char *line;
	size_t size;
	unsigned int number; /* of `line` */
};

static void text_deinit(struct text *text)
{
	if (text->file)
		fclose(text->file);
	free(text->line);
	*text = (struct text){ .file = NULL };
}

/* The text of the line, or NULL. */
static const char *source_line(struct text *text, const char *path, unsigned int number)
{
	if (!text->path || strcmp(text->path, path) != 0 || number < text->number) {
		text_deinit(text);
		text->path = path;
		text->file = fopen(path, "re");
	}
	while (text->file && text->number < number) {
		if (getline(&text->line, &text->size, text->file) < 0)
			return NULL;
		text->number++;
	}
	if (!text->file || !text->line)
		return NULL;
	text->line[strcspn(text->line, "\r\n")] = '\0';
	return text->line;
}

/* A line of source, with its tabs every 8 columns. */
static void print_source(const char *line)
{
	unsigned int column = 0;
	char one[2] = "";

	for (; *line; line++, column++) {
		if (*line == '\t') {
			printf("%*s", 8 - column % 8, "");
			column += 7 - column % 8;
			continue;
		}
		one[0] = *line;
		if ((unsigned char)*line >= 0x80)
			break; /* several bytes may be one character */
		kymo_utf8_print(stdout, one);
	}
	kymo_utf8_print(stdout, line);
}

static int by_line(const void *a, const void *b)
{
	const struct kymo_source_line *x = a, *y = b;
	const int order = strcmp(x->file, y->file);

	if (order)
		return order;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* The lines of the file that the function is in: from its first to its last, those between that have no code, too. */
static void print_lines(const struct kymo_source_line *lines, size_t n)
{
	struct text text = { .file = NULL };
	const char *line;

	for (size_t i = 0; i < n;) {
		const struct kymo_source_line *at = &lines[i];

		if (!i || strcmp(lines[i - 1].file, at->file) != 0) {
			kymo_utf8_print(stdout, at->file);
			puts(":");
		} else {
			for (unsigned int between = lines[i - 1].line + 1; between < at->line; between++) {
				line = source_line(&text, at->file, between);
				if (line && between + 40 > at->line) {
					printf("  %6u              ", between);
					print_source(line);
					putchar('\n');
				}
			}
		}
		line = source_line(&text, at->file, at->line);
		printf("  %6u  0x%08" PRIx64 "  ", at->line, at->vaddr);
		print_source(line ? line : "");
		if (at->inlined) {
			fputs("  (in ", stdout);
			kymo_utf8_print(stdout, at->inlined);
			fputs(", inlined)", stdout);
		}
		putchar('\n');
		while (i < n && lines[i].line == at->line && !strcmp(lines[i].file, at->file))
			i++;
	}
	text_deinit(&text);
}

static void print_lines_json(const struct kymo_source_line *lines, size_t n, bool *is_first)
{
	for (size_t i = 0; i < n; i++) {
		fputs(*is_first ? "[\n {\"file\": " : ",\n {\"file\": ", stdout);
		*is_first = false;
		kymo_json_string(stdout, lines[i].file);
		printf(", \"line\": %u, \"vaddr\": %" PRIu64 ", \"function\": ", lines[i].line, lines[i].vaddr);
		kymo_json_string(stdout, lines[i].function);
		fputs(", \"inlined\": ", stdout);
		kymo_json_string(stdout, lines[i].inlined);
		putchar('}');
	}
}

static struct kymo_error *list_lines_of(const struct cli_source *source, uint64_t vaddr, bool json, bool *is_first)
{
	kymo_cleanup_free struct kymo_source_line *sorted = NULL;
	const struct kymo_source_line *lines;
	struct kymo_error *error;
	size_t n;

	error = kymo_debug_function_lines(source->debug, vaddr, &lines, &n);
	if (error || !n)
		return error;
	if (json) {
		print_lines_json(lines, n, is_first);
		return NULL;
	}
	sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return &kymo_error_no_memory;
	memcpy(sorted, lines, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_line);
	print_lines(sorted, n);
	*is_first = false;
	return NULL;
}

struct kymo_error *cli_list_lines(const char *location, bool json)
{
	kymo_cleanup(cli_source_deinit) struct cli_source source = { 0 };
	struct kymo_error *error = find_source(location, &source);
	bool is_first = true;

	for (size_t i = 0; !error && i < source.places.n; i++)
		error = list_lines_of(&source, source.places.items[i], json, &is_first);
	if (!error && is_first)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "the debug information of %s has no lines there",
					 kymo_module_path(source.module));
	if (json && !error)
		puts("\n]");
	return error;
}
