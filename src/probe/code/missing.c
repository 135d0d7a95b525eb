#include "probe/code/missing.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "marker/list.h"
#include "marker/marker.h"
#include "marker/match.h"
#include "sym/find.h"
#include "sym/glob.h"
#include "sym/module.h"

static bool is_of_marker(struct kymo_module *module, const char *name)
{
	struct kymo_marker_list *list = NULL;
	bool is_found = false;

	if (!strpbrk(name, ":|"))
		kymo_error_destroy(kymo_markers_create(module, &list));
	for (size_t i = 0; list && i < list->n && !is_found; i++)
		is_found = kymo_marker_matches(name, kymo_module_path(module), NULL, list->items[i].provider,
					       list->items[i].name);
	kymo_markers_destroy(list);
	return is_found;
}

void kymo_missing_function(struct kymo_module *module, const char *name, char *out, size_t size)
{
	static const char before[] = "; the nearest names are ";

	*out = 0;
	if (is_of_marker(module, name)) {
		snprintf(out, size,
			 "; a marker has that name: write -m '%s', or 'm %s' in --count, --until and the like", name,
			 name);
	} else if (!kymo_is_glob(name) && size > sizeof(before)) {
		kymo_module_nearest(module, name, out + sizeof(before) - 1, size - (sizeof(before) - 1));
		if (out[sizeof(before) - 1])
			memcpy(out, before, sizeof(before) - 1);
	}
}

struct kymo_error *kymo_no_such_function(struct kymo_module *module, const char *file, const char *name)
{
	char meant[600];

	kymo_missing_function(module, name, meant, sizeof(meant));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no function %s%s%s%s", kymo_module_path(module), name,
				 *meant ? meant : " ('kymo list ", *meant ? "" : file,
				 *meant ? "" : "' shows what there is)");
}
