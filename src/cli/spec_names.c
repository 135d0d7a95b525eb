#include "cli/spec_names.h"

#include <stdio.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "cli/debug_files.h"
#include "cli/forced_returns.h"
#include "cli/modules.h"
#include "cli/output.h"
#include "cli/scope.h"
#include "sym/debug.h"
#include "sym/demangle.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/module.h"
#include "sym/sym.h"

static void print_build_id(const struct kymo_module *module, char out[2 * KYMO_BUILD_ID_MAX + 1])
{
	size_t size;
	const uint8_t *bytes = kymo_module_build_id(module, &size);

	*out = '\0';
	for (size_t i = 0; i < size && i < KYMO_BUILD_ID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static struct kymo_error *name(struct kymo_spec *spec, const struct cli_scope *scope)
{
	char build_id[2 * KYMO_BUILD_ID_MAX + 1] = "";
	struct kymo_error *error;

	if (scope->scope.debug)
		print_build_id(scope->module, build_id);
	error = kymo_spec_name(spec, &scope->scope, build_id);
	return kymo_error_retell(error, spec->text, kymo_spec_typed(spec));
}

static struct kymo_error *find_names(struct kymo_spec *spec)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(spec->file, &path);
	struct cli_scope scope;

	if (!error)
		error = cli_scope_open(spec, path, &scope);
	if (!error) {
		error = name(spec, &scope);
		cli_scope_close(&scope);
	}
	for (size_t i = 0; !error && i < spec->n_args; i++)
		if (spec->args[i].cut)
			cli_warn("%s", spec->args[i].cut);
	if (!error || spec->needs_names || error->code == KYMO_ERROR_NO_MEMORY)
		return error;
	kymo_error_destroy(error); /* what it wanted it goes without */
	return NULL;
}

/* ---- what functions return ------------------------------------------------------------------- */

static struct kymo_error *refuse_return(const struct kymo_symbol *function, const struct kymo_ctype *type,
					enum kymo_returned returned, bool is_alone)
{
	kymo_cleanup_free char *shown = kymo_shown(function->name);
	const char *instead = "write %ax for that register";

	if (returned == KYMO_RETURNED_VECTOR)
		instead = !is_alone                        ? "name it alone, and write ($retval)"
			  : type->kind == KYMO_CTYPE_FLOAT ? "write ($retval)"
							   : "write one of its members, as in ($retval).x";
	if (!shown)
		return &kymo_error_no_memory;
	return kymo_error_create(KYMO_ERROR_USAGE,
				 "'%s' returns a '%s', which the register of integers does not have; %s", shown,
				 type->name, instead);
}

static struct kymo_error *refuse_nothing(const struct kymo_symbol *function)
{
	kymo_cleanup_free char *shown = kymo_shown(function->name);

	return shown ? kymo_error_create(KYMO_ERROR_USAGE,
					 "'%s' returns nothing (void); write %%ax for what it happens to leave in the "
					 "register",
					 shown)
		     : &kymo_error_no_memory;
}

/* Of several functions the others are recorded all the same. */
static void warn_of_returns(const char *text, size_t n_refused, size_t n, struct kymo_error *first)
{
	if (n_refused)
		cli_warn("of %zu functions of '%s', $retval is not what %zu return%s (first: %s)", n, text, n_refused,
			 n_refused == 1 ? "s" : "", first->message);
	kymo_error_destroy(first);
}

/* What a function returns is in the register of integers, or nothing is known of it. USAGE, NO_MEMORY. */
static struct kymo_error *check_function(struct kymo_debug *debug, const struct kymo_symbol *function, bool is_alone)
{
	const struct kymo_ctype *type = NULL;
	enum kymo_returned returned;
	struct kymo_error *error = kymo_debug_return_type(debug, function->vaddr, &type, &returned);

	if (!error && type && returned != KYMO_RETURNED_INTEGER)
		error = refuse_return(function, type, returned, is_alone);
	else if (!error && returned == KYMO_RETURNED_NOTHING && is_alone)
		error = refuse_nothing(function);
	if (!error || error->code == KYMO_ERROR_USAGE || error->code == KYMO_ERROR_NO_MEMORY)
		return error;
	kymo_error_destroy(error);
	return NULL;
}

/* All `n` are checked. Of several, the user is warned of those that are refused, unless the spec computes with what
 * they return. */
static struct kymo_error *check_functions(const struct kymo_spec *spec, struct kymo_debug *debug,
					  const struct kymo_symbol *const *functions, size_t n)
{
	struct kymo_error *first = NULL;
	size_t n_refused = 0;
	bool is_alone = true;

	for (size_t i = 1; i < n; i++)
		is_alone &= functions[i]->vaddr == functions[0]->vaddr;
	for (size_t i = 0; i < n; i++) {
		struct kymo_error *error = check_function(debug, functions[i], is_alone);

		if (!error)
			continue;
		if (error->code == KYMO_ERROR_NO_MEMORY || is_alone || spec->computes_raw_retval) {
			kymo_error_destroy(first);
			return error;
		}
		n_refused++;
		if (first)
			kymo_error_destroy(error);
		else
			first = error;
	}
	warn_of_returns(spec->symbol, n_refused, n, first);
	return NULL;
}

static struct kymo_error *check_returns(const struct kymo_spec *spec)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(spec->file, &path);
	struct kymo_module *module = NULL;
	struct kymo_debug *debug = NULL;
	size_t n = 0;

	if (!error)
		error = cli_module(path, &module);
	if (!error)
		error = kymo_module_find(module, spec->symbol, &found, &n);
	if (!error && n)
		error = cli_debug_open(module, &debug);
	if (error && error->code != KYMO_ERROR_NO_MEMORY) {
		kymo_error_destroy(error); /* nothing is known of them */
		error = NULL;
	}
	if (!error && spec->leaves_function)
		error = cli_check_forced_return(spec, debug, found, n);
	if (!error && debug && spec->has_raw_retval)
		error = check_functions(spec, debug, found, n);
	if (debug)
		kymo_debug_close(debug);
	return error;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct kymo_error *cli_spec_find_names(struct kymo_spec *spec)
{
	struct kymo_error *error = spec->needs_names || spec->wants_names ? find_names(spec) : NULL;

	return !error && (spec->has_raw_retval || spec->leaves_function) && spec->symbol ? check_returns(spec) : error;
}
