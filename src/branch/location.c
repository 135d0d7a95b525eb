#include "branch/location.h"

#include <stdio.h>
#include <string.h>

#include "branch/space.h"
#include "branch/state.h"
#include "sym/debug.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

/* Opened once. */
static struct kymo_debug *debug_of(struct branch_file *file)
{
	if (!file->was_debug_read && file->module)
		kymo_error_destroy(kymo_debug_open(file->module, NULL, &file->debug));
	file->was_debug_read = true;
	return file->debug;
}

static void find_source(struct branch_file *file, uint64_t vaddr, char *text, size_t size)
{
	struct kymo_debug *debug = debug_of(file);
	struct kymo_source_line line;
	const char *name;

	if (!debug || !kymo_debug_line_of(debug, vaddr, &line))
		return;
	name = strrchr(line.file, '/');
	snprintf(text, size, "%s:%u", name ? name + 1 : line.file, line.line);
}

void kymo_branches_locate(struct kymo_branches *branches, uint32_t space, uint64_t address,
			  struct kymo_branch_location *ret)
{
	const struct branch_region *region = branch_region_at(branch_space_of(&branches->spaces, space), address);
	struct kymo_module *module = region ? branch_module(region) : NULL;
	const struct kymo_function *function;
	uint64_t bias;

	*ret = (struct kymo_branch_location){
		.file = region ? region->name : "", .function = "", .linked = address, .source = ""
	};
	if (region && *region->name) /* the same in each run; memory without a name is at its address only */
		ret->linked = address - region->range.start + region->offset;
	if (!module || kymo_module_bias(module, region->range.start, region->offset, &bias))
		return;
	ret->linked = address - bias;
	function = kymo_module_function_at(module, ret->linked);
	if (function && function->name) {
		ret->function = function->name;
		ret->offset = ret->linked - function->start;
	}
	branches->source[0] = '\0';
	find_source(region->file, ret->linked, branches->source, sizeof(branches->source));
	ret->source = branches->source;
}
