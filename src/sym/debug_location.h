/* Where variables are at an address. Private to the room. */
#ifndef KYMO_SYM_DEBUG_LOCATION_H
#define KYMO_SYM_DEBUG_LOCATION_H

#include "sym/debug_expression.h"

/*
 * Where the variable or parameter `die` is by its location or constant value. `context` needs no attribute. `size` is
 * its type's. Ranges in reasons are told from
 * `from` on, where its function begins.
 */
void sym_location_find(const struct sym_context *context, Dwarf_Die *die, uint64_t size, uint64_t from,
		       struct sym_location *ret);

/* Let `frames` be what describes frames. */
void sym_frames_open(struct kymo_debug *debug);

#endif
