/*
 * What debug information is made of (debug.h). Private to the room.
 *
 * libdw bounds what it reads to the sections, and reads these from memory that kymo has filled: never by mmap, since a
 * file's owner may cut it short. What may still lie are the references between entries. So chains are followed for a
 * number of steps, trees to a depth, siblings only while their addresses grow. Walks through trees come to each entry
 * once.
 */
#ifndef KYMO_SYM_DEBUG_STATE_H
#define KYMO_SYM_DEBUG_STATE_H

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "base/vec.h"
#include "sym/debug.h"
#include "sym/image.h"
#include "wire/ctype.h"

#define SYM_CHAIN_MAX 32 /* steps from entry to entry, as from typedef to typedef */
#define SYM_DEPTH_MAX 64 /* of entries within entries */

/* Code of a function: of one in several parts, a part. */
struct sym_function_code {
	uint64_t start, end;
	Dwarf_Die die;
};

/* A unit: a source file and what it includes. */
struct sym_unit {
	Dwarf_Die die;      /* its entry; of a split unit, that in the other file */
	Dwarf_Die skeleton; /* what the program's own file has of it: ranges and lines; else the same as `die` */
	int language;       /* DW_LANG_…, or 0 */
	bool is_partial;    /* of dwz: parts of others, without code */
	const struct sym_function_code *functions; /* sorted by start; once functions_are_read */
	size_t n_functions;
	bool functions_are_read;
	bool is_unplaced; /* it does not say where its code is */
};

/* Addresses of a unit. */
struct sym_unit_range {
	uint64_t start, end;
	uint64_t end_so_far; /* the greatest of this and those before */
	uint32_t unit;
};

/* What a structure has, once it was asked for. */
struct sym_members {
	const struct kymo_ctype_member *items;
	size_t n;
	bool is_known;
};

/* A type with what kymo knows of it. `type` is first: others hold a pointer to it. */
struct sym_type {
	struct kymo_ctype type;
	Dwarf_Die die;
	bool has_die, is_declaration;
	Dwarf_Die complete; /* of a declaration, what another unit has of it, if is_complete */
	bool is_complete;
	unsigned int dimension; /* of an array: 0 the outermost */
	const struct kymo_ctype *pointer;
	struct sym_members members, parts;
	const struct kymo_ctype_enumerator *enumerators;
	size_t n_enumerators;
	bool has_enumerators;
};

/* What is declared outside of functions, by name. */
enum sym_name_kind { SYM_NAME_VARIABLE, SYM_NAME_TYPE, SYM_NAME_FUNCTION };

struct sym_name {
	const char *name;    /* with its namespaces */
	uint32_t hash, next; /* index + 1 of the next in the same bucket; 0: none */
	uint32_t unit;
	enum sym_name_kind kind;
	bool is_declaration;
	Dwarf_Die die;
};

/* An enumeration outside of functions, also one without a name. */
struct sym_enumeration {
	uint32_t unit;
	Dwarf_Die die;
};

struct sym_chunk;

/* A section of debug information in memory, for strings that have no end. */
struct sym_span {
	const char *start, *end;
};

struct kymo_debug {
	const struct kymo_module *module;
	struct sym_image image, alt_image;
	Dwarf *dwarf, *alt;
	Dwarf_CFI *frames, *debug_frames; /* of .eh_frame and .debug_frame; or NULL */
	bool frames_are_sought;
	bool ignores_splits; /* .dwo files */

	struct sym_chunk *chunks;
	unsigned int steps;    /* that a name may still take */
	uint64_t budget;       /* ranges and scopes that may still be looked at, see sym_debug_spend() */
	size_t paths_size;     /* bytes of paths that were put together */
	uint64_t first_code;   /* where the first executable segment begins; 0: none does */
	size_t n_functions;    /* of all units that were read */
	bool is_out_of_memory; /* sym_debug_end() tells */

	KYMO_VEC(struct sym_span) spans;
	KYMO_VEC(Dwarf *) spanned; /* whose sections are among `spans` */
	KYMO_VEC(struct sym_unit) units;
	KYMO_VEC(struct sym_unit_range) ranges; /* sorted by start */
	KYMO_VEC(struct sym_type *) types;
	uint32_t *type_buckets; /* of `types`, index + 1 */
	size_t n_type_buckets;

	bool names_are_read;
	KYMO_VEC(struct sym_name) names;
	KYMO_VEC(struct sym_enumeration) enumerations; /* read with the names */
	uint32_t *name_buckets;
	size_t n_name_buckets;
};

/*
 * Account for `n` ranges of addresses or entries that are looked at. Entries may share a list of ranges, so that a
 * small file could keep a search busy for years: false once far more was asked for than the file holds.
 */
static inline bool sym_debug_spend(struct kymo_debug *debug, uint64_t n)
{
	const bool has = debug->budget >= n;

	debug->budget = has ? debug->budget - n : 0;
	return has;
}

/* Whether memory has run out since the call began. */
static inline struct kymo_error *sym_debug_end(struct kymo_debug *debug)
{
	const bool is_out = debug->is_out_of_memory;

	debug->is_out_of_memory = false;
	return is_out ? &kymo_error_no_memory : NULL;
}

#endif
