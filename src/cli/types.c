#include "cli/types.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/debug_files.h"
#include "sym/debug.h"
#include "sym/files.h"
#include "sym/module.h"
#include "sym/open.h"

/* One command line has one set of them. The first `debugs.n` files are open. */
static KYMO_VEC(const char *) paths;
static KYMO_VEC(struct kymo_module *) modules;
static KYMO_VEC(struct kymo_debug *) debugs;

struct kymo_error *cli_types_add(const char *path)
{
	for (size_t i = 0; i < paths.n; i++)
		if (!strcmp(paths.items[i], path))
			return NULL;
	return kymo_vec_push(&paths, path) ? NULL : &kymo_error_no_memory;
}

static struct kymo_error *open_file(const char *name)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(name, &path);
	struct kymo_module *module = NULL;
	struct kymo_debug *debug = NULL;

	if (!error)
		error = kymo_module_open(path, &module);
	if (!error && !kymo_vec_push(&modules, module)) {
		kymo_module_close(module);
		error = &kymo_error_no_memory;
	}
	if (!error)
		error = cli_debug_open(module, &debug);
	if (!error && !kymo_vec_push(&debugs, debug)) {
		kymo_debug_close(debug);
		error = &kymo_error_no_memory;
	}
	if (error && error->code != KYMO_ERROR_NO_MEMORY)
		error->code = KYMO_ERROR_USAGE;
	return error;
}

struct kymo_error *cli_types_open(struct kymo_debug *const **ret, size_t *n_ret)
{
	struct kymo_error *error = NULL;

	while (debugs.n < paths.n && !error)
		error = open_file(paths.items[debugs.n]);
	*ret = debugs.items;
	*n_ret = debugs.n;
	return error;
}

void cli_types_deinit(void)
{
	for (size_t i = 0; i < debugs.n; i++)
		kymo_debug_close(debugs.items[i]);
	for (size_t i = 0; i < modules.n; i++)
		kymo_module_close(modules.items[i]);
	kymo_vec_deinit(&debugs);
	kymo_vec_deinit(&modules);
	kymo_vec_deinit(&paths);
}
