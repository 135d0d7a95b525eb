#include "cli/cmd_list.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/debug_files.h"
#include "cli/list_markers.h"
#include "cli/list_source.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/target.h"
#include "probe/spec/spec.h"
#include "sym/demangle.h"
#include "sym/files.h"
#include "sym/functions.h"
#include "sym/glob.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "sym/symbols.h"

enum { JSON = 1, NAMES, VARS, LINES, DEBUG_FILE };

static const struct cli_option table[] = {
	{ JSON, 0, "json", NULL },
	{ NAMES, 0, "names", NULL },
	{ VARS, 0, "vars", NULL },
	{ LINES, 0, "lines", NULL },
	{ DEBUG_FILE, 0, "debug-file", "FILE" },
};

/* A function that can be named in a probe. Strings belong to the module. */
struct list_row {
	const char *name, *version; /* NULL: .eh_frame knows the function, no symbol does */
	uint64_t vaddr, offset, size;
	bool is_ifunc;
};

struct list_rows {
	char *file_wanted;          /* of "FILE:GLOB", or NULL */
	const char *glob;           /* or NULL: everything */
	char *pattern;              /* the glob as fnmatch() takes it, or NULL */
	struct kymo_pattern *names; /* what the glob means in C++ and Rust, or NULL */
	struct cli_marker_lister markers;
	bool json;
	bool names_only;
	size_t n_printed;
};

static int by_name(const void *a, const void *b)
{
	const struct list_row *x = a, *y = b;
	int order;

	if (!x->name != !y->name)
		return !x->name ? 1 : -1;
	order = x->name ? strcmp(x->name, y->name) : 0;
	if (order)
		return order;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* `version` is NULL for the symbol that a plain name means. */
static bool wanted(const struct list_rows *list, const char *name, const char *version)
{
	char full[1024];

	if (!list->pattern || !fnmatch(list->pattern, name, 0) || kymo_pattern_means(list->names, name))
		return true;
	if (!version || snprintf(full, sizeof(full), "%s@%s", name, version) >= (int)sizeof(full))
		return false;
	return !fnmatch(list->pattern, full, 0);
}

struct rows {
	struct list_row *items;
	size_t n, cap;
};

static struct kymo_error *add_list_row(struct rows *rows, const struct kymo_module *module, struct list_row row)
{
	/* What lies in no file (a symbol of .bss, a damaged one) cannot be probed. */
	if (kymo_module_vaddr_to_offset(module, row.vaddr, &row.offset))
		return NULL;
	return kymo_vec_push(rows, row) ? NULL : &kymo_error_no_memory;
}

static struct kymo_error *gather_rows(const struct list_rows *list, struct kymo_module *module, struct rows *rows)
{
	const struct kymo_function *functions;
	struct kymo_error *error = NULL;
	size_t n;
	const struct kymo_symbol *symbols = kymo_module_symbols(module, &n);

	for (size_t i = 0; !error && i < n; i++) {
		const char *version = symbols[i].is_default ? NULL : symbols[i].version;

		if (wanted(list, symbols[i].name, version))
			error = add_list_row(rows, module,
					     (struct list_row){ symbols[i].name, version, symbols[i].vaddr, 0,
								symbols[i].size, symbols[i].is_ifunc });
	}
	if (error || list->glob)
		return error;
	error = kymo_module_functions(module, &functions, &n);
	for (size_t i = 0; !error && i < n; i++)
		if (!functions[i].name)
			error = add_list_row(rows, module,
					     (struct list_row){ .vaddr = functions[i].start,
								.size = functions[i].end - functions[i].start });
	return error;
}

static void print_text_row(const char *path, const struct list_row *row)
{
	printf("0x%08" PRIx64 "  0x%08" PRIx64 "  %7" PRIu64 "  ", row->vaddr, row->offset, row->size);
	kymo_utf8_print(stdout, path);
	putchar(':');
	if (row->name)
		kymo_print_shown(stdout, row->name);
	else
		printf("0x%" PRIx64, row->offset);
	if (row->version) {
		putchar('@');
		kymo_utf8_print(stdout, row->version);
	}
	puts(row->is_ifunc ? "  (ifunc)" : "");
}

/* What a shell completes. Of a demangled name this is what comes before its parameters, if a shell takes it for one
 * word. */
static void print_word(const struct list_row *row, char last[KYMO_DEMANGLED_MAX])
{
	kymo_cleanup_free char *shown = row->name ? kymo_shown(row->name) : NULL;
	const bool is_demangled = shown && strcmp(shown, row->name) != 0;

	if (is_demangled)
		shown[kymo_name_size(shown)] = '\0';
	if (!shown || !*shown || (is_demangled && strpbrk(shown, " \t\n()<>{}[]*?&;|'\"\\`$!#")) ||
	    !strncmp(shown, last, KYMO_DEMANGLED_MAX - 1))
		return;
	snprintf(last, KYMO_DEMANGLED_MAX, "%s", shown);
	kymo_utf8_print(stdout, shown);
	putchar('\n');
}

static void print_json_row(const char *path, const struct list_row *row, bool first)
{
	fputs(first ? "[\n {\"file\": " : ",\n {\"file\": ", stdout);
	kymo_json_string(stdout, path);
	fputs(", \"name\": ", stdout);
	cli_print_json_name(stdout, row->name);
	if (row->name && kymo_is_mangled(row->name)) {
		fputs(", \"mangled\": ", stdout);
		kymo_json_string(stdout, row->name);
	}
	fputs(", \"version\": ", stdout);
	kymo_json_string(stdout, row->version);
	printf(", \"vaddr\": %" PRIu64 ", \"offset\": %" PRIu64 ", \"size\": %" PRIu64 ", \"ifunc\": %s}", row->vaddr,
	       row->offset, row->size, row->is_ifunc ? "true" : "false");
}

static struct kymo_error *list_functions(struct list_rows *list, struct kymo_module *module)
{
	const char *path = kymo_module_path(module);
	char last[KYMO_DEMANGLED_MAX] = "";
	struct rows rows = { 0 };
	struct kymo_error *error;

	if (list->file_wanted && !kymo_name_matches_file(list->file_wanted, path, kymo_module_soname(module)))
		return NULL;
	error = gather_rows(list, module, &rows);
	if (!error && rows.n) {
		qsort(rows.items, rows.n, sizeof(*rows.items), by_name);
		if (!list->json && !list->names_only && !list->n_printed && isatty(STDOUT_FILENO))
			puts("address     in file        bytes  function");
	}
	for (size_t i = 0; !error && i < rows.n; i++) {
		if (list->json)
			print_json_row(path, &rows.items[i], !list->n_printed);
		else if (list->names_only)
			print_word(&rows.items[i], last);
		else
			print_text_row(path, &rows.items[i]);
		list->n_printed++;
	}
	kymo_vec_deinit(&rows);
	return error;
}

/* For a process, a file that cannot be read is told and the others are listed. */
static struct kymo_error *list_file(struct list_rows *list, const struct cli_target *target, size_t i)
{
	struct kymo_module *module = NULL;
	struct kymo_error *error = cli_target_open(target, i, &module);

	if (!error && module)
		error = list_functions(list, module);
	if (!error && module && !list->names_only)
		error = cli_list_markers(&list->markers, module);
	kymo_module_close(module);
	if (error && target->pid && error->code != KYMO_ERROR_NO_MEMORY) {
		cli_warn("%s", error->message);
		kymo_error_destroy(error);
		error = NULL;
	}
	return error;
}

static struct kymo_error *nothing_found(const struct list_rows *list, const struct cli_target *target,
					const char *where)
{
	char near[512] = "";

	if (!list->glob)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no functions that could be told apart", where);
	if (!kymo_is_glob(list->glob))
		cli_target_nearest(target, list->file_wanted, list->glob, near, sizeof(near));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no function in %s is called '%s'%s%s", where, list->glob,
				 *near ? "; near are " : "", near);
}

static int list_target(const char *where, const char *glob, bool json, bool names_only)
{
	kymo_cleanup(cli_target_deinit) struct cli_target target = { 0 };
	kymo_cleanup_free char *file_wanted = NULL, *pattern = NULL;
	const char *colon = glob ? kymo_spec_file_end(glob) : NULL;
	struct list_rows list = {
		.glob = glob, .json = json, .names_only = names_only, .markers = { .glob = glob, .json = json }
	};
	struct kymo_error *error;

	error = cli_target_init(where, &target);
	if (error)
		return cli_fail("list", error);
	if (colon) {
		list.file_wanted = file_wanted = strndup(glob, (size_t)(colon - glob));
		list.glob = colon + 1;
		if (!file_wanted)
			return cli_fail("list", &kymo_error_no_memory);
	}
	if (list.glob) {
		list.pattern = pattern = kymo_glob_create(list.glob);
		list.names = kymo_pattern_create(list.glob);
		if (!pattern || !list.names) {
			kymo_pattern_destroy(list.names);
			return cli_fail("list", &kymo_error_no_memory);
		}
	}
	list.markers.n_printed = &list.n_printed;
	list.markers.names_file = target.pid;
	for (size_t i = 0; !error && i < cli_target_count(&target); i++)
		error = list_file(&list, &target, i);
	kymo_pattern_destroy(list.names);
	if (json && list.n_printed)
		puts("\n]");
	else if (!error && !list.n_printed)
		error = nothing_found(&list, &target, where);
	return error ? cli_fail("list", error) : 0;
}

/* What is asked of `kymo list`. */
struct request {
	const char *operands[2];
	size_t n;
	bool json, names_only, vars, lines, has_debug_file;
};

static int list_source(const struct request *request)
{
	struct kymo_error *error;

	if (request->n != 1)
		return cli_usage("list", "--%s takes one location, such as ./app:main or ./app:app.c:120",
				 request->vars ? "vars" : "lines");
	error = request->vars ? cli_list_vars(request->operands[0], request->json)
			      : cli_list_lines(request->operands[0], request->json);
	return error ? cli_fail("list", error) : 0;
}

/* FILE:GLOB, as probes are written, is FILE and GLOB, unless there is a file of that name. */
static int list_where(const struct request *request)
{
	const char *where = request->operands[0];
	const char *colon = request->n == 1 && access(where, F_OK) ? kymo_spec_file_end(where) : NULL;
	kymo_cleanup_free char *file = colon ? strndup(where, (size_t)(colon - where)) : NULL;

	if (colon && !file)
		return cli_fail("list", &kymo_error_no_memory);
	return list_target(file ? file : where, file ? colon + 1 : request->operands[1], request->json,
			   request->names_only);
}

static int list_request(const struct request *request)
{
	if (!request->n)
		return cli_usage("list", "list what? give a file, such as libc, or the PID of a process");
	if (request->json + request->names_only > 1 || request->vars + request->lines + request->names_only > 1)
		return cli_usage("list", request->json && request->names_only
						 ? "--names and --json exclude each other"
						 : "--vars, --lines and --names exclude each other");
	if (request->vars || request->lines)
		return list_source(request);
	if (request->has_debug_file)
		return cli_usage("list", "--debug-file requires --vars or --lines");
	return list_where(request);
}

int cmd_list(int argc, char **argv)
{
	struct cli_options options = { "list", table, kymo_countof(table), argc, argv, .at = 1 };
	struct request request = { .n = 0 };
	struct kymo_error *error;

	for (;;) {
		switch (cli_options_next(&options)) {
		case JSON:
			request.json = true;
			break;
		case NAMES:
			request.names_only = true;
			break;
		case VARS:
			request.vars = true;
			break;
		case LINES:
			request.lines = true;
			break;
		case DEBUG_FILE:
			request.has_debug_file = true;
			error = cli_debug_files_add(options.value);
			if (error)
				return cli_fail("list", error);
			break;
		case CLI_OPERAND:
			if (request.n == kymo_countof(request.operands))
				return cli_usage("list", "one FILE or PID and one GLOB: '%s' is too much",
						 options.value);
			request.operands[request.n++] = options.value;
			break;
		case CLI_END:
			return list_request(&request);
		case CLI_HELP:
			return 0;
		default:
			return 2;
		}
	}
}
