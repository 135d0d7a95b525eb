/*
 * A module as the planner wants it: text, data, extents and entries out of sym, and the entry map built from them.
 */
#ifndef KYMO_PROBE_CODE_H
#define KYMO_PROBE_CODE_H

#include "arch/arch.h"
#include "base/error.h"
#include "sym/sym.h"

struct kymo_code {
	struct kymo_module_code code;	/* what kymo_plan() takes; bytes belong to the module */
	struct kymo_entry_map *map;
};

/*
 * Gather what is known of `module` and decode its text once. The module must outlive the result. BAD_DATA where
 * .eh_frame, an LSDA or the like is damaged, NO_MEMORY.
 */
struct kymo_error *kymo_code_create(struct kymo_module *module, struct kymo_code **ret);
void kymo_code_destroy(struct kymo_code *code);

#endif
