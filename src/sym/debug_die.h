/* Entries of debug information (DIE), read with distrust. Private to the room. */
#ifndef KYMO_SYM_DEBUG_DIE_H
#define KYMO_SYM_DEBUG_DIE_H

#include "sym/debug_state.h"

/* The first entry within `parent`; then the next one after `die`, in place. False: there is none. */
bool sym_die_first(Dwarf_Die *parent, Dwarf_Die *ret);
bool sym_die_next(Dwarf_Die *die);

/*
 * A walk through all entries within one comes to the next, and `last` is where it has come before. False: the entry
 * does not lie after all of them, as where the sibling of an entry is its own child. Such a row ends there; else a walk
 * through a few entries could take years.
 */
static inline bool sym_die_pass(const void **last, const Dwarf_Die *die)
{
	if ((uintptr_t)die->addr <= (uintptr_t)*last)
		return false;
	*last = die->addr;
	return true;
}

/* A string attribute, of the entry itself or of what it stands for. NULL: none, or none with an end. */
const char *sym_die_string(struct kymo_debug *debug, Dwarf_Die *die, unsigned int name);
const char *sym_die_name(struct kymo_debug *debug, Dwarf_Die *die);

/* The entry that an attribute refers to. */
bool sym_die_reference(Dwarf_Die *die, unsigned int name, Dwarf_Die *ret);

bool sym_die_number(Dwarf_Die *die, unsigned int name, uint64_t *ret);
bool sym_die_signed(Dwarf_Die *die, unsigned int name, int64_t *ret);
bool sym_die_flag(Dwarf_Die *die, unsigned int name);

/* The entry that says what this is an instance of, or completes (DW_AT_abstract_origin, DW_AT_specification), to the
 * end of the chain; else itself. */
void sym_die_origin(Dwarf_Die *die, Dwarf_Die *ret);

/* Follow typedefs and qualifiers. False: they lead nowhere (void), or in a circle. `alias_ret` gets the last typedef
 * that was passed, if it is not NULL, and *has_alias whether there was one. */
bool sym_die_peel(Dwarf_Die *die, Dwarf_Die *ret, Dwarf_Die *alias_ret, bool *has_alias_ret);

/* Whether the entry's code has `vaddr`. False, too, once too much was looked at. */
bool sym_die_has(struct kymo_debug *debug, Dwarf_Die *die, uint64_t vaddr);

/* Where a walk through the ranges of an entry is; all zeros at first. */
struct sym_ranges {
	ptrdiff_t at;
	Dwarf_Addr base;
};

/*
 * The next range of the entry's code. False: there is none, or too much was looked at. Those
 * before the program's code are left out: linkers leave 0 where they have dropped a function.
 */
bool sym_die_range(struct kymo_debug *debug, Dwarf_Die *die, struct sym_ranges *ranges, uint64_t *start_ret,
		   uint64_t *end_ret);

static inline bool sym_die_is(Dwarf_Die *a, Dwarf_Die *b)
{
	return a->addr == b->addr;
}

/* Whether names within such an entry are written after its own: "shop::Cart". */
static inline bool sym_tag_is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

#endif
