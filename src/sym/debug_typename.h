/* How types are spelled. Private to the room. */
#ifndef KYMO_SYM_DEBUG_TYPENAME_H
#define KYMO_SYM_DEBUG_TYPENAME_H

#include "sym/debug_state.h"

#define SYM_TYPENAME_MAX 512

/* As gdb's `whatis` spells it: "const size_t", "char *[4]", "int (*)(struct conn *)". NULL: void. Longer names are
 * cut. */
const char *sym_typename(struct kymo_debug *debug, Dwarf_Die *type);

/* An array's, from its dimension `from` on. */
const char *sym_typename_of_array(struct kymo_debug *debug, Dwarf_Die *array, unsigned int from);

/* The elements of dimension `i` of an array; false: it has no such. 0: not known. */
bool sym_array_dimension(Dwarf_Die *array, unsigned int i, uint64_t *ret);

/* The name with its namespaces and classes, of an entry outside of functions; NULL. */
const char *sym_qualified_name(struct kymo_debug *debug, Dwarf_Die *die);

#endif
