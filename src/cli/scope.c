#include "cli/scope.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "cli/debug_files.h"
#include "cli/modules.h"
#include "cli/structures.h"
#include "cli/types.h"
#include "probe/code/missing.h"
#include "sym/debug.h"
#include "sym/find.h"
#include "sym/module.h"
#include "sym/sym.h"

/* ---- where it is ----------------------------------------------------------------------------- */

/* A file of debug information that the user has named may have the name, and be of another build. */
static struct kymo_error *refuse_symbol(struct kymo_module *module, const struct kymo_spec *spec)
{
	struct kymo_debug *debug = NULL;
	struct kymo_error *error = cli_debug_open(module, &debug);

	kymo_debug_close(debug);
	if (error && error->code != KYMO_ERROR_NOT_FOUND)
		return error;
	kymo_error_destroy(error);
	return kymo_no_such_function(module, spec->file, spec->symbol);
}

/* Of functions with that name there has to be one. */
static struct kymo_error *find_symbol(struct kymo_module *module, const struct kymo_spec *spec, uint64_t *ret)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct kymo_error *error;
	size_t n, others = 0;

	error = kymo_module_find(module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return refuse_symbol(module, spec);
	for (size_t i = 1; i < n; i++)
		others += found[i]->vaddr != found[0]->vaddr;
	if (others)
		return kymo_error_create(
			KYMO_ERROR_USAGE,
			"%s means %zu functions of %s, which may have different variables; write arg0, "
			"arg1 ... for parameters",
			spec->symbol, n, kymo_module_path(module));
	*ret = found[0]->vaddr + (uint64_t)spec->offset;
	return NULL;
}

static struct kymo_error *find_location(struct kymo_module *module, const struct kymo_spec *spec, uint64_t *ret)
{
	if (spec->symbol)
		return find_symbol(module, spec, ret);
	if (kymo_module_offset_to_vaddr(module, (uint64_t)spec->offset, ret))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "offset 0x%" PRIx64 " of %s is in no segment that is loaded",
					 (uint64_t)spec->offset, kymo_module_path(module));
	return NULL;
}

/* ---- its debug information ------------------------------------------------------------------- */

/* Without any the names are told by the reason. */
static struct kymo_error *open_debug(struct cli_scope *scope)
{
	struct kymo_error *error = cli_debug_open(scope->module, &scope->scope.debug);

	if (!error || error->code != KYMO_ERROR_NOT_FOUND)
		return error;
	scope->error = error;
	scope->scope.why = error->message;
	return NULL;
}

struct kymo_error *cli_scope_open(const struct kymo_spec *spec, const char *path, struct cli_scope *ret)
{
	struct cli_scope scope = { .scope.is_return = spec->is_return, .scope.limits = cli_structures_limits() };
	struct kymo_error *error = cli_module(path, &scope.module);

	if (!error)
		error = find_location(scope.module, spec, &scope.scope.vaddr);
	if (!error)
		error = open_debug(&scope);
	if (!error)
		error = cli_types_open(&scope.scope.types, &scope.scope.n_types);
	if (error)
		cli_scope_close(&scope);
	else
		*ret = scope;
	return error;
}

void cli_scope_close(struct cli_scope *scope)
{
	if (scope->scope.debug)
		kymo_debug_close(scope->scope.debug);
	kymo_error_destroy(scope->error);
}
