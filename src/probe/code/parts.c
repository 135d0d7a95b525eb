#include "probe/code/parts.h"

#include <string.h>

#include "base/vec.h"

static bool is_split_off(const struct kymo_function *function, const char *name, size_t length)
{
	return function->name && !strncmp(function->name, name, length) &&
	       !strncmp(function->name + length, ".cold", 5);
}

struct kymo_error *probe_parts_create(struct kymo_module *module, uint64_t vaddr, const char *name,
				      struct kymo_extent **ret, size_t *n_ret)
{
	const struct kymo_function *functions, *own = kymo_module_function_at(module, vaddr);
	KYMO_VEC(struct kymo_extent) parts = { 0 };
	struct kymo_error *error;
	size_t n;
	bool ok;

	error = kymo_module_functions(module, &functions, &n);
	if (error)
		return error;
	if (!own)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "%s does not say where its function %s ends",
					 kymo_module_path(module), name);
	ok = kymo_vec_push(&parts, (struct kymo_extent){ own->start, own->end });
	for (size_t i = 0; i < n && ok; i++)
		if (is_split_off(&functions[i], name, strlen(name)))
			ok = kymo_vec_push(&parts, (struct kymo_extent){ functions[i].start, functions[i].end });
	if (!ok) {
		kymo_vec_deinit(&parts);
		return &kymo_error_no_memory;
	}
	*ret = parts.items;
	*n_ret = parts.n;
	return NULL;
}
