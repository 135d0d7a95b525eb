#include "cli/spec_names.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "sym/parameters.h"

/* Where the one function with that name is entered. */
static struct kymo_error *find_entry(struct kymo_module *module, const struct kymo_spec *spec, uint64_t *ret)
{
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct kymo_error *error;
	size_t n;

	error = kymo_module_find(module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no function %s", kymo_module_path(module),
					 spec->symbol);
	if (n > 1)
		return kymo_error_create(KYMO_ERROR_USAGE,
					 "%s means %zu functions of %s, whose parameters may be others; write arg0, "
					 "arg1 ... for them",
					 spec->symbol, n, kymo_module_path(module));
	*ret = found[0]->vaddr;
	return NULL;
}

static void print_build_id(const struct kymo_module *module, char out[2 * KYMO_BUILD_ID_MAX + 1])
{
	size_t size;
	const uint8_t *bytes = kymo_module_build_id(module, &size);

	*out = '\0';
	for (size_t i = 0; i < size && i < KYMO_BUILD_ID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static struct kymo_error *name(struct kymo_spec *spec, struct kymo_module *module)
{
	kymo_cleanup(kymo_parameters_deinit) struct kymo_parameters parameters = { 0 };
	char build_id[2 * KYMO_BUILD_ID_MAX + 1];
	struct kymo_error *error;
	uint64_t entry;

	error = find_entry(module, spec, &entry);
	if (error)
		return error;
	error = kymo_module_parameters(module, entry, &parameters);
	if (error)
		return kymo_error_prefix(error, "names in '%s' are not known; write arg0, arg1 ... for them",
					 spec->text);
	print_build_id(module, build_id);
	return kymo_spec_name(spec, &parameters, build_id);
}

struct kymo_error *cli_spec_find_names(struct kymo_spec *spec)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_module *module;
	struct kymo_error *error = kymo_find_file(spec->file, &path);

	if (!error)
		error = kymo_module_open(path, &module);
	if (error)
		return error;
	error = name(spec, module);
	kymo_module_close(module);
	return error;
}
