/*
 * A module as the planner wants it: text, data, extents and entries out of sym, and the entry map built from them.
 */
#ifndef KYMO_PROBE_CODE_CODE_H
#define KYMO_PROBE_CODE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"
#include "base/error.h"
#include "marker/marker.h"

struct kymo_module;

struct kymo_code {
	struct kymo_module_code code; /* what kymo_plan() takes; bytes belong to the module */
	struct kymo_entry_map *map;
	struct kymo_indirect *indirects; /* made by kymo_indirects() */
	size_t n_indirects;
	bool knows_indirects;
};

/*
 * Gather what is known of `module` and decode its text once. The module must outlive the result. BAD_DATA where
 * .eh_frame, an LSDA or the like is damaged, NO_MEMORY. `markers` are the module's, for all that have them; where it is
 * NULL they are read here.
 */
struct kymo_error *kymo_code_create(struct kymo_module *module, const struct kymo_marker_list *markers,
				    struct kymo_code **ret);
/* The same for JIT code: `text`, whose bytes must outlive the result, and the part of it that is taken for a function.
 * Other code leads to the instruction at `entry`. */
struct kymo_error *kymo_code_create_jit(const struct kymo_span *text, const struct kymo_extent *function,
					uint64_t entry, struct kymo_code **ret);

/* The `size` bytes of text at `vaddr` as the file has them. False where some are not text; `ret` may be changed then.
 */
bool kymo_code_bytes(const struct kymo_code *code, uint64_t vaddr, uint8_t *ret, size_t size);

void kymo_code_destroy(struct kymo_code *code);

#endif
