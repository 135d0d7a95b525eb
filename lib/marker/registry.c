/* The modules that are known, and their markers. modules.c finds them. */
#include "registry.h"

#include <string.h>

#include "base/search.h"

struct lib_registry kymo_lib_registry;

size_t kymo_lib_index_of(const struct lib_module *module)
{
	size_t index = 0;

	while (kymo_lib_registry.modules[index] != module)
		index++;
	return index;
}

/* The first marker of the first module from the index that has some and can be touched. */
static struct lib_marker *first_from(size_t index)
{
	for (; index < kymo_lib_registry.n_modules; index++) {
		struct lib_module *module = kymo_lib_registry.modules[index];
		if (kymo_lib_is_usable(module) && module->n_markers)
			return module->markers;
	}
	return NULL;
}

struct lib_marker *kymo_lib_first_marker(void)
{
	return first_from(0);
}

struct lib_marker *kymo_lib_next_marker(struct lib_marker *marker)
{
	const struct lib_module *module = marker->module;

	return marker + 1 < module->markers + module->n_markers ? marker + 1
								: first_from(kymo_lib_index_of(module) + 1);
}

struct lib_marker *kymo_lib_next_named(struct lib_named *at)
{
	for (; at->module < kymo_lib_registry.n_modules; at->module++, at->is_inside = false) {
		const struct lib_module *module = kymo_lib_registry.modules[at->module];
		if (!kymo_lib_is_usable(module))
			continue;
		if (!at->is_inside)
			at->index = kymo_partition_point(i, module->n_markers,
							 strcmp(module->named[i]->name, at->name) < 0);
		at->is_inside = true;
		if (at->index < module->n_markers && strcmp(module->named[at->index]->name, at->name) == 0)
			return module->named[at->index++];
	}
	return NULL;
}
