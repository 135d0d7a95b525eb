#include "probe/code/offset.h"

#include <inttypes.h>

#include "probe/spec/spec.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

struct kymo_error *kymo_check_offset(const struct kymo_spec *spec, struct kymo_module *module, uint64_t vaddr)
{
	const struct kymo_function *function = spec->offset ? kymo_module_function_at(module, vaddr) : NULL;
	uint64_t size;

	if (!function || function->start != vaddr)
		return NULL;
	size = function->end - function->start;
	if (spec->offset < 0 || (uint64_t)spec->offset < size)
		return NULL;
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "%s of %s has %" PRIu64 " bytes: +0x%" PRIx64 " is beyond its end", spec->symbol,
				 kymo_module_path(module), size, (uint64_t)spec->offset);
}
