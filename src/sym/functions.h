/* Extents of functions. */
#ifndef KYMO_SYM_FUNCTIONS_H
#define KYMO_SYM_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_function;
struct kymo_module;

/* Function extents, sorted, not overlapping: symbols with sizes, joined with .eh_frame (FDEs give extents to what has
 * no symbol or a symbol without size; so does Go's table). Aliases appear once, with the shortest global name. Computed
 * at first use. */
struct kymo_error *kymo_module_functions(struct kymo_module *module, const struct kymo_function **ret, size_t *n_ret);

/* The function whose extent contains `vaddr`, or NULL. */
const struct kymo_function *kymo_module_function_at(struct kymo_module *module, uint64_t vaddr);

/* Whether the compiler has split it off from the function `name`: "f.cold" of "f". */
bool kymo_function_is_part_of(const struct kymo_function *function, const char *name);

/* "name+0x12", "name" at its start, or "0x…" (as a file offset is written nowhere: this is the vaddr) into `out`; used
 * in messages and reports. */
void kymo_module_describe(struct kymo_module *module, uint64_t vaddr, char *out, size_t size);

#endif
