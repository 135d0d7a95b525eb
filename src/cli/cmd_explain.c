#include "cli/cmd_explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "cli/debug_files.h"
#include "cli/types.h"
#include "cli/explain_branch.h"
#include "cli/explain_site.h"
#include "cli/explain_value.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/spec_source.h"
#include "cli/target.h"
#include "probe/code/offset.h"
#include "probe/plan/faults.h"
#include "probe/snapshot/status.h"
#include "probe/spec/spec_scope.h"
#include "proc/process.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/glob.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"

/* ---- all sites of a location ----------------------------------------------------------------- */

/* Each instruction of the function at `vaddr`; where they can't be told, its first location tells why. */
static struct kymo_error *explain_instructions(struct cli_explainer *explainer, uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, vaddr);
	const struct kymo_entry_map *map = explainer->code->map;
	kymo_cleanup_free uint64_t *starts = NULL;
	size_t n;
	int r;

	r = function ? kymo_instructions_create(map, function->start, function->end, &starts, &n) : -EPERM;
	if (r == -ENOMEM)
		return &kymo_error_no_memory;
	if (r) {
		cli_explain_site(explainer, vaddr);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (kymo_site_of(map, starts[i]) == starts[i]) /* an endbr64 stays */
			cli_explain_site(explainer, starts[i]);
	return NULL;
}

/* What a location means: `n` symbols. */
struct found {
	const struct kymo_symbol **symbols;
	size_t n;
};

/* Whether it has a part of its own, as another IFUNC's function or by a symbol. */
static bool is_explained(const struct cli_explainer *explainer, const struct found *found, uint64_t vaddr)
{
	for (size_t i = 0; i < explainer->chosen.n; i++)
		if (explainer->chosen.items[i] == vaddr)
			return true;
	for (size_t i = 0; i < found->n; i++)
		if (found->symbols[i]->vaddr == vaddr)
			return !found->symbols[i]->is_ifunc;
	return false;
}

static struct kymo_error *explain_function(struct cli_explainer *explainer, const struct kymo_spec *spec,
					   uint64_t vaddr)
{
	struct kymo_error *error = kymo_check_offset(spec, explainer->module, vaddr);

	if (error)
		return error;
	if (spec->every_instruction)
		return explain_instructions(explainer, vaddr);
	cli_explain_site(explainer, vaddr + (uint64_t)spec->offset);
	return NULL;
}

/* What the symbol points to runs once, in the dynamic linker; what callers reach are other functions. Several IFUNCs
 * may share these. */
static struct kymo_error *explain_indirect(struct cli_explainer *explainer, const struct kymo_spec *spec,
					   const struct found *found, const struct kymo_symbol *symbol)
{
	struct cli_indirects *indirects = &explainer->indirects;
	const struct kymo_indirect *indirect;
	struct kymo_error *error;

	indirects->module = explainer->module;
	error = kymo_indirects(explainer->code, explainer->module, &indirects->items, &indirects->n);
	if (error)
		return error;
	indirect = kymo_indirect_at(indirects->items, indirects->n, symbol->vaddr);
	if (!indirect) /* two symbols disagree about what it is */
		return explain_function(explainer, spec, symbol->vaddr);
	cli_explain_begin(explainer);
	cli_print_indirect(indirects, indirect, symbol->name);
	if (!indirect->n || (indirect->n > 1 && spec->offset)) {
		explainer->n_sites++;
		explainer->n_by_tactic[KYMO_TACTIC_NONE]++;
	}
	if (indirect->n > 1 && spec->offset) {
		puts("  site       none: the offset may be in any of them; name one");
		return NULL;
	}
	for (size_t i = 0; !error && i < indirect->n; i++) {
		if (is_explained(explainer, found, indirect->functions[i]))
			continue;
		if (!kymo_vec_push(&explainer->chosen, indirect->functions[i]))
			return &kymo_error_no_memory;
		error = explain_function(explainer, spec, indirect->functions[i]);
	}
	return error;
}

static struct kymo_error *explain_symbols(struct cli_explainer *explainer, const struct kymo_spec *spec)
{
	kymo_cleanup_free const struct kymo_symbol **symbols = NULL;
	struct kymo_error *error;
	struct found found;

	error = kymo_module_find(explainer->module, spec->symbol, &symbols, &found.n);
	if (error || !found.n)
		return error;
	found.symbols = symbols;
	error = kymo_code_create(explainer->module, NULL, &explainer->code);
	for (size_t i = 0; !error && i < found.n; i++)
		error = symbols[i]->is_ifunc ? explain_indirect(explainer, spec, &found, symbols[i])
					     : explain_function(explainer, spec, symbols[i]->vaddr);
	kymo_vec_deinit(&explainer->chosen);
	return error;
}

static struct kymo_error *explain_offset(struct cli_explainer *explainer, const struct kymo_spec *spec)
{
	struct kymo_error *error;
	uint64_t vaddr;

	if (kymo_module_offset_to_vaddr(explainer->module, (uint64_t)spec->offset, &vaddr))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "offset 0x%" PRIx64 " of %s is in no segment that is loaded",
					 (uint64_t)spec->offset, kymo_module_path(explainer->module));
	error = kymo_code_create(explainer->module, NULL, &explainer->code);
	if (!error)
		cli_explain_site(explainer, vaddr);
	return error;
}

static struct kymo_error *explain_address(struct cli_explainer *explainer, pid_t pid, uint64_t address)
{
	struct kymo_process *process = NULL;
	struct kymo_error *error = kymo_process_look(pid, &process);

	if (!error)
		error = kymo_jit_open(process, address, &explainer->jit);
	if (!error) {
		explainer->code = explainer->jit->code;
		cli_explain_site(explainer, address);
	}
	kymo_jit_close(explainer->jit);
	kymo_process_destroy(process);
	return error;
}

/* `file` is NULL for all files. */
static struct kymo_error *explain_file(struct cli_explainer *explainer, const struct cli_target *target, size_t i,
				       const char *file, const struct kymo_spec *spec)
{
	struct kymo_error *error = cli_target_open(target, i, &explainer->module);

	explainer->indirects.pid = target->pid;
	explainer->watched_faults = target->pid ? kymo_faults_of(kymo_handled_signals(target->pid)) : 0;
	explainer->indirects.map = target->pid ? target->files.items[i] : NULL;
	if (!error && explainer->module &&
	    (!file ||
	     kymo_name_matches_file(file, kymo_module_path(explainer->module), kymo_module_soname(explainer->module))))
		error = spec->symbol ? explain_symbols(explainer, spec) : explain_offset(explainer, spec);
	kymo_code_destroy(explainer->code);
	kymo_module_close(explainer->module);
	explainer->code = NULL;
	explainer->module = NULL;
	/* One file of a process that cannot be read does not hide the others. */
	if (error && target->pid && !file && error->code != KYMO_ERROR_NO_MEMORY) {
		cli_warn("%s", error->message);
		kymo_error_destroy(error);
		error = NULL;
	}
	return error;
}

static struct kymo_error *nothing_found(const struct cli_target *target, const char *where, const char *file,
					const struct kymo_spec *spec)
{
	char near[512] = "";

	if (!spec->symbol)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "process %s has no file '%s'", where, spec->file);
	if (!kymo_is_glob(spec->symbol))
		cli_target_nearest(target, file, spec->symbol, near, sizeof(near));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no function in %s is called '%s'%s%s", where, spec->symbol,
				 *near ? "; near are " : "", near);
}

static void print_totals(const struct cli_explainer *explainer)
{
	if (explainer->n_sites < 2)
		return;
	printf("\n%zu sites:", explainer->n_sites);
	for (int tactic = KYMO_TACTIC_NONE + 1; tactic < KYMO_N_TACTICS; tactic++) {
		if (tactic > KYMO_TACTIC_GROUP && !explainer->n_by_tactic[tactic])
			continue;
		printf(" %zu %s,", explainer->n_by_tactic[tactic], kymo_tactic_name((enum kymo_tactic)tactic));
	}
	printf(" %zu refused\n", explainer->n_by_tactic[KYMO_TACTIC_NONE]);
}

/* `text` with what ends a file in a SPEC quoted. */
static char *quote(const char *text)
{
	char *quoted = malloc(2 * strlen(text) + 1), *to = quoted;

	for (; quoted && *text; text++) {
		if (strchr(" \t\n\v\f\r:\\", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	if (quoted)
		*to = '\0';
	return quoted;
}

static struct kymo_error *check_location(const struct kymo_spec *spec, const char *location)
{
	if (!spec->n_args && !spec->event && !spec->filter)
		return NULL;
	return kymo_error_create(KYMO_ERROR_USAGE, "a location has no arguments%s and no event: '%s'",
				 spec->filter ? ", no filter" : "", location);
}

/* LOCATION is read as the location of a SPEC whose file is `where`; with a process it may name its file itself. */
static struct kymo_error *parse_location(const char *where, const char *location, bool names_file,
					 struct cli_specs *ret)
{
	kymo_cleanup_free char *file = quote(where), *text = NULL;
	struct kymo_error *error;
	struct cli_specs specs;

	if (names_file)
		text = strdup(location);
	else if (!file || asprintf(&text, "%s:%s", file, location) < 0)
		text = NULL;
	if (!text)
		return &kymo_error_no_memory;
	error = cli_specs_parse(text, kymo_spec_parse, &specs);
	if (error)
		return error;
	error = check_location(&specs.items.items[0], location);
	if (error)
		cli_specs_deinit(&specs);
	else
		*ret = specs;
	return error;
}

static struct kymo_error *explain_spec(struct cli_explainer *explainer, const struct cli_target *target,
				       const struct kymo_spec *spec, bool names_file)
{
	struct kymo_error *error = NULL;

	if (spec->address)
		return explain_address(explainer, target->pid, spec->address);
	for (size_t i = 0; !error && i < cli_target_count(target); i++)
		error = explain_file(explainer, target, i, names_file ? spec->file : NULL, spec);
	return error;
}

static struct kymo_error *explain(const char *where, const char *location)
{
	kymo_cleanup(cli_target_deinit) struct cli_target target = { 0 };
	kymo_cleanup(cli_specs_deinit) struct cli_specs specs = { 0 };
	struct cli_explainer explainer = { 0 };
	const struct kymo_spec *spec;
	struct kymo_error *error;
	bool names_file;

	error = cli_target_init(where, &target);
	if (error)
		return error;
	names_file = target.pid && (kymo_spec_file_end(location) || !strncasecmp(location, "0x", 2));
	error = parse_location(where, location, names_file, &specs);
	if (!error)
		error = cli_debug_files_check();
	if (error)
		return error;
	spec = &specs.items.items[0];
	if (target.pid && !names_file && !spec->symbol)
		return kymo_error_create(KYMO_ERROR_USAGE, "of which file of process %d? write libc:%s", target.pid,
					 location);
	for (size_t i = 0; !error && i < specs.items.n; i++)
		error = explain_spec(&explainer, &target, &specs.items.items[i], names_file);
	if (error)
		return error;
	if (!spec->address)
		print_totals(&explainer);
	if (!explainer.n_sites && !spec->address)
		return nothing_found(&target, where, names_file ? spec->file : NULL, spec);
	if (explainer.n_by_tactic[KYMO_TACTIC_NONE] && explainer.n_by_tactic[KYMO_TACTIC_NONE] == explainer.n_sites)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "no probe can be put at '%s'", location);
	return NULL;
}

/* The expression with the names of a location, if one is given: of several, such as a line has, with those of each. */
static struct kymo_error *explain_value(const char *text, const char *where, const char *location)
{
	kymo_cleanup(cli_specs_deinit) struct cli_specs specs = { 0 };
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error;

	if (!where)
		return cli_explain_value(text, NULL, NULL);
	error = kymo_find_file(where, &path);
	if (!error)
		error = parse_location(where, location, false, &specs);
	for (size_t i = 0; !error && i < specs.items.n; i++)
		error = kymo_spec_has_scope(&specs.items.items[i])
				? cli_explain_value(text, &specs.items.items[i], path)
				: kymo_error_create(KYMO_ERROR_USAGE,
						    "names are known at one location, and '%s' means several",
						    location);
	return error;
}

enum { EXPRESSION = 1, DEBUG_FILE, TYPES, BRANCH };

static int explain_operands(const char *const operands[2], size_t n, const char *expression, bool branch)
{
	struct kymo_error *error;

	if (branch && (!n || expression))
		return cli_usage("explain",
				 "--branch takes a file or PID, and a function: explain --branch libc 'mem*'");
	if (!branch && n < 2 && (n || !expression))
		return cli_usage("explain", "explain what? give a file or PID and a location, such as libc malloc");
	if (branch)
		error = cli_explain_branch(operands[0], operands[1]);
	else
		error = expression ? explain_value(expression, operands[0], operands[1])
				   : explain(operands[0], operands[1]);
	return error ? cli_fail("explain", error) : 0;
}

int cmd_explain(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ EXPRESSION, 'e', "expression", "EXPRESSION" },
		{ DEBUG_FILE, 0, "debug-file", "FILE" },
		{ TYPES, 0, "types", "FILE" },
		{ BRANCH, 0, "branch", NULL },
	};
	struct cli_options options = { "explain", table, kymo_countof(table), argc, argv, .at = 1 };
	const char *operands[2] = { NULL, NULL }, *expression = NULL;
	struct kymo_error *error;
	bool branch = false;
	size_t n = 0;

	for (;;) {
		switch (cli_options_next(&options)) {
		case EXPRESSION:
			expression = options.value;
			break;
		case DEBUG_FILE:
			error = cli_debug_files_add(options.value);
			if (error)
				return cli_fail("explain", error);
			break;
		case TYPES:
			error = cli_types_add(options.value);
			if (error)
				return cli_fail("explain", error);
			break;
		case BRANCH:
			branch = true;
			break;
		case CLI_OPERAND:
			if (n == kymo_countof(operands))
				return cli_usage("explain", "one file or process and one location: '%s' is too much",
						 options.value);
			operands[n++] = options.value;
			break;
		case CLI_END:
			return explain_operands(operands, n, expression, branch);
		case CLI_HELP:
			return 0;
		default:
			return 2;
		}
	}
}
