#include "cli/spec_names.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/scope.h"

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

	if (scope->scope.debug)
		print_build_id(scope->module, build_id);
	return kymo_spec_name(spec, &scope->scope, build_id);
}

struct kymo_error *cli_spec_find_names(struct kymo_spec *spec)
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
	if (!error || spec->needs_names || error->code == KYMO_ERROR_NO_MEMORY)
		return error;
	kymo_error_destroy(error); /* what it wanted it goes without */
	return NULL;
}
