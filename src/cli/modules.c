#include "cli/modules.h"

#include <string.h>

#include "base/vec.h"
#include "sym/module.h"
#include "sym/open.h"

static KYMO_VEC(struct kymo_module *) modules;

struct kymo_error *cli_module(const char *path, struct kymo_module **ret)
{
	struct kymo_module *module;
	struct kymo_error *error;

	for (size_t i = 0; i < modules.n; i++)
		if (!strcmp(kymo_module_path(modules.items[i]), path)) {
			*ret = modules.items[i];
			return NULL;
		}
	error = kymo_module_open(path, &module);
	if (error)
		return error;
	if (!kymo_vec_push(&modules, module)) {
		kymo_module_close(module);
		return &kymo_error_no_memory;
	}
	*ret = module;
	return NULL;
}

void cli_modules_close(void)
{
	for (size_t i = 0; i < modules.n; i++)
		kymo_module_close(modules.items[i]);
	kymo_vec_deinit(&modules);
}
