/* Units of debug information and what is within them. Private to the room. */
#ifndef KYMO_SYM_DEBUG_UNIT_H
#define KYMO_SYM_DEBUG_UNIT_H

#include "sym/debug_state.h"

/* Fill in `units` and `ranges`. */
void sym_units_read(struct kymo_debug *debug);

/* Whether the language passes parameters as C does, and whether it has "struct" before the names of structures. */
bool sym_unit_is_c_like(const struct sym_unit *unit);
bool sym_language_has_tags(int language);

/* The language of the unit that holds the entry, or 0. */
int sym_die_language(Dwarf_Die *die);

#define SYM_SCOPES_MAX SYM_DEPTH_MAX

/* The function that holds an address, and what of it does: blocks and inlined functions, the innermost last. */
struct sym_scopes {
	struct kymo_debug *debug;
	const struct sym_unit *unit;
	Dwarf_Die dies[SYM_SCOPES_MAX];
	size_t n;
	uint64_t entry; /* of the function */
	bool has_entry;
};

/* False: no function is described there. */
bool sym_scopes_find(struct kymo_debug *debug, uint64_t vaddr, struct sym_scopes *ret);

/* The same within the function that was found before. False: it has not the address. */
bool sym_scopes_move(struct sym_scopes *scopes, uint64_t vaddr);

/* The first address of a function or an inlined one. */
bool sym_die_entry(Dwarf_Die *die, uint64_t *ret);

/* The number of a unit that says to have the address, or -1. Of several that whose range begins last. */
ptrdiff_t sym_unit_at(struct kymo_debug *debug, uint64_t vaddr);

/* The file that has what the compiler has split off from the unit of that address, and is missing; or NULL. */
const char *sym_missing_file(struct kymo_debug *debug, uint64_t vaddr);

/*
 * NOT_FOUND: no function is described at `vaddr`. Says which file is missing where the unit of that address was split
 * (-gsplit-dwarf).
 */
struct kymo_error *sym_no_function(struct kymo_debug *debug, uint64_t vaddr);

/* The name of the function of scope `i`, which is a function or an inlined one; NULL. */
const char *sym_scope_name(struct kymo_debug *debug, struct sym_scopes *scopes, size_t i);

/* The innermost inlined function, by its number, or 0: there is none. */
size_t sym_scopes_inlined(struct sym_scopes *scopes);

/* Whether entries of that tag may have functions within. */
bool sym_holds_functions(int tag);

/* Whether the entry is an inlined function. */
bool sym_is_inlined(Dwarf_Die *die);

#endif
