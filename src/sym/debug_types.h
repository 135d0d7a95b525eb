/* Types. Private to the room. */
#ifndef KYMO_SYM_DEBUG_TYPES_H
#define KYMO_SYM_DEBUG_TYPES_H

#include "sym/debug_state.h"

/* The type of an entry: of one that has a type (DW_AT_type), such as a variable. Void where there is none. */
const struct kymo_ctype *sym_type_of(struct kymo_debug *debug, Dwarf_Die *die);
const char *sym_declared_type(struct kymo_debug *debug, Dwarf_Die *die);

/* The type that the entry itself is. */
const struct kymo_ctype *sym_type_at(struct kymo_debug *debug, Dwarf_Die *type);

const struct kymo_ctype *sym_type_void(void);

/* What the room knows of a type; NULL for types of others. */
struct sym_type *sym_type_know(struct kymo_debug *debug, const struct kymo_ctype *type);

static inline bool sym_type_is_aggregate(const struct kymo_ctype *type)
{
	return type->kind == KYMO_CTYPE_STRUCT || type->kind == KYMO_CTYPE_UNION;
}

/* Where only a declaration is known: look it up in other units. Sets its size. */
void sym_type_complete(struct kymo_debug *debug, struct sym_type *type);

/* The type of pointers to `type`. NULL: out of memory. */
const struct kymo_ctype *kymo_debug_pointer(struct kymo_debug *debug, const struct kymo_ctype *type);

#endif
