#include "sym/debug_unit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/search.h"
#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/module.h"
#include "sym/sym.h"

/* A range takes 32 bytes of memory and at least 4 of the file; many units may name the same ones. */
#define RANGES_MAX (4u << 20)

/* How often the ranges and scopes of a file may be looked at: enough for many addresses of a small one. */
#define BUDGET_BASE (1u << 26)
#define BUDGET_OF_BYTE 32

/* Of several that begin at one address the first unit comes last: it is found first. */
static int by_start(const void *a, const void *b)
{
	const struct sym_unit_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? 1 : x->unit > y->unit ? -1 : 0;
}

static void add_ranges(struct kymo_debug *debug, Dwarf_Die *skeleton, uint32_t unit)
{
	struct sym_unit_range range = { .unit = unit };
	struct sym_ranges ranges = { 0 };

	while (debug->ranges.n < RANGES_MAX && sym_die_range(debug, skeleton, &ranges, &range.start, &range.end))
		if (!kymo_vec_push(&debug->ranges, range)) {
			debug->is_out_of_memory = true;
			return;
		}
}

static void add_unit(struct kymo_debug *debug, Dwarf_Die *die, Dwarf_Die *split, uint8_t type)
{
	struct sym_unit unit = { .die = *die, .skeleton = *die };
	uint32_t number = (uint32_t)debug->units.n;

	if (type == DW_UT_skeleton && split->addr && dwarf_tag(split) != DW_TAG_invalid)
		unit.die = *split;
	unit.language = dwarf_srclang(&unit.die);
	if (unit.language < 0)
		unit.language = 0;
	unit.is_partial = dwarf_tag(&unit.die) == DW_TAG_partial_unit;
	unit.is_unplaced = !unit.is_partial && !dwarf_hasattr(die, DW_AT_ranges) && !dwarf_hasattr(die, DW_AT_high_pc);
	if (!kymo_vec_push(&debug->units, unit)) {
		debug->is_out_of_memory = true;
		return;
	}
	if (!unit.is_partial)
		add_ranges(debug, die, number);
}

static void read_units(struct kymo_debug *debug, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL, *next;
	Dwarf_Half version;
	uint8_t type;

	for (;;) {
		Dwarf_Die die = { 0 }, split = { 0 };

		if (dwarf_get_units(dwarf, unit, &next, &version, &type, &die, debug->ignores_splits ? NULL : &split) ||
		    debug->is_out_of_memory)
			return;
		if (die.addr && dwarf_tag(&die) != DW_TAG_invalid)
			add_unit(debug, &die, &split, type);
		unit = next;
	}
}

static uint64_t first_code(const struct kymo_module *module)
{
	const struct kymo_segment *segments;
	size_t n;

	segments = kymo_module_segments(module, &n);
	for (size_t i = 0; i < n; i++)
		if (segments[i].executable)
			return segments[i].vaddr;
	return 0;
}

static void sort_ranges(struct kymo_debug *debug)
{
	uint64_t end = 0;

	if (!debug->ranges.n)
		return;
	qsort(debug->ranges.items, debug->ranges.n, sizeof(*debug->ranges.items), by_start);
	for (size_t i = 0; i < debug->ranges.n; i++) {
		struct sym_unit_range *range = &debug->ranges.items[i];

		end = range->end > end ? range->end : end;
		range->end_so_far = end;
	}
}

void sym_units_read(struct kymo_debug *debug)
{
	debug->budget = BUDGET_BASE + BUDGET_OF_BYTE * (debug->image.size + debug->alt_image.size);
	debug->first_code = first_code(debug->module);
	read_units(debug, debug->dwarf);
	if (debug->alt)
		read_units(debug, debug->alt);
	sort_ranges(debug);
}

/* ---- languages ------------------------------------------------------------------------------- */

static bool is_cxx(int language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14;
}

static bool is_c(int language)
{
	/* 0x2c is DW_LANG_C17, which this libdw does not name yet. */
	return language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11 ||
	       language == 0x2c;
}

bool sym_unit_is_c_like(const struct sym_unit *unit)
{
	return is_c(unit->language) || is_cxx(unit->language) || unit->language == 0x2b /* DW_LANG_C_plus_plus_20 */ ||
	       unit->language == 0x2a /* DW_LANG_C_plus_plus_17 */;
}

bool sym_language_has_tags(int language)
{
	return !language || is_c(language);
}

int sym_die_language(Dwarf_Die *die)
{
	Dwarf_Die unit;
	int language;

	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return 0;
	language = dwarf_srclang(&unit);
	return language < 0 ? 0 : language;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Of the ranges before number `n`, the last that has the address: its number and one; 0: none. */
static size_t range_before(struct kymo_debug *debug, size_t n, uint64_t vaddr)
{
	const struct sym_unit_range *ranges = debug->ranges.items;

	for (; n && ranges[n - 1].end_so_far > vaddr && sym_debug_spend(debug, 1); n--)
		if (vaddr < ranges[n - 1].end)
			return n;
	return 0;
}

/* The number of ranges that do not begin after the address. */
static size_t ranges_up_to(const struct kymo_debug *debug, uint64_t vaddr)
{
	return kymo_partition_point(i, debug->ranges.n, debug->ranges.items[i].start <= vaddr);
}

ptrdiff_t sym_unit_at(struct kymo_debug *debug, uint64_t vaddr)
{
	const size_t at = range_before(debug, ranges_up_to(debug, vaddr), vaddr);

	return at ? (ptrdiff_t)debug->ranges.items[at - 1].unit : -1;
}

bool sym_is_inlined(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_inlined_subroutine;
}

/* Go down from the function to the innermost block that has the address. */
static void go_down(struct sym_scopes *scopes, uint64_t vaddr)
{
	while (scopes->n < SYM_SCOPES_MAX) {
		Dwarf_Die die;
		bool is_there = sym_die_first(&scopes->dies[scopes->n - 1], &die);

		for (; is_there && sym_debug_spend(scopes->debug, 1); is_there = sym_die_next(&die)) {
			const int tag = dwarf_tag(&die);

			if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
			     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
			    sym_die_has(scopes->debug, &die, vaddr))
				break;
		}
		if (!is_there || !scopes->debug->budget)
			return;
		scopes->dies[scopes->n++] = die;
	}
}

bool sym_holds_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* ---- functions by their addresses ------------------------------------------------------------ */

/* Overlapping code is a lie: so many functions are looked at for an address. */
#define OVERLAPS_MAX 16

/* Of all units: a function takes 48 bytes of memory, and a few of the file. */
#define FUNCTIONS_MAX (1u << 20)

struct reading {
	struct kymo_debug *debug;
	const void *last; /* entry that the walk has come to */
	KYMO_VEC(struct sym_function_code) codes;
};

/* What comes first in the unit comes last of what begins at one address: it is found first. */
static int compare_codes(const void *a, const void *b)
{
	const struct sym_function_code *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->die.addr < y->die.addr ? 1 : x->die.addr > y->die.addr ? -1 : 0;
}

static void add_codes(struct reading *reading, Dwarf_Die *function)
{
	struct sym_function_code code = { .die = *function };
	struct sym_ranges ranges = { 0 };

	while (reading->debug->n_functions + reading->codes.n < FUNCTIONS_MAX &&
	       sym_die_range(reading->debug, function, &ranges, &code.start, &code.end))
		if (!kymo_vec_push(&reading->codes, code)) {
			reading->debug->is_out_of_memory = true;
			return;
		}
}

/* Those within `parent`, and within other functions. */
static void read_codes(struct reading *reading, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(parent, &die);
	     is_there && !reading->debug->is_out_of_memory && sym_die_pass(&reading->last, &die);
	     is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_codes(reading, &die);
		if (depth < SYM_DEPTH_MAX && sym_holds_functions(tag))
			read_codes(reading, &die, depth + 1);
	}
}

/* Once a unit: a walk through all of it. */
static void read_functions(struct kymo_debug *debug, struct sym_unit *unit)
{
	struct reading reading = { .debug = debug };

	if (unit->functions_are_read)
		return;
	read_codes(&reading, &unit->die, 0);
	if (reading.codes.n)
		qsort(reading.codes.items, reading.codes.n, sizeof(*reading.codes.items), compare_codes);
	unit->functions = sym_debug_copy(debug, reading.codes.items, reading.codes.n, sizeof(*unit->functions));
	unit->n_functions = unit->functions ? reading.codes.n : 0;
	debug->n_functions += unit->n_functions;
	unit->functions_are_read = !debug->is_out_of_memory;
	kymo_vec_deinit(&reading.codes);
}

static bool find_function(struct kymo_debug *debug, struct sym_unit *unit, uint64_t vaddr, Dwarf_Die *ret)
{
	size_t at;

	read_functions(debug, unit);
	at = kymo_partition_point(i, unit->n_functions, unit->functions[i].start <= vaddr);
	for (size_t k = 0; at && k < OVERLAPS_MAX; k++) {
		const struct sym_function_code *code = &unit->functions[--at];

		if (vaddr < code->end) {
			*ret = code->die;
			return true;
		}
	}
	return false;
}

/* ---- scopes of an address -------------------------------------------------------------------- */

bool sym_die_entry(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	if (!dwarf_entrypc(die, &start)) {
		*ret = start;
		return true;
	}
	do /* gcc writes empty ranges, too */
		at = dwarf_ranges(die, at, &base, &start, &end);
	while (at > 0 && start >= end);
	if (at <= 0)
		return false;
	*ret = start;
	return true;
}

static bool find_in_unit(struct kymo_debug *debug, size_t unit, uint64_t vaddr, struct sym_scopes *scopes)
{
	scopes->debug = debug;
	scopes->unit = &debug->units.items[unit];
	if (!find_function(debug, &debug->units.items[unit], vaddr, &scopes->dies[0]))
		return false;
	scopes->n = 1;
	scopes->entry = 0;
	scopes->has_entry = sym_die_entry(&scopes->dies[0], &scopes->entry);
	go_down(scopes, vaddr);
	return true;
}

bool sym_scopes_move(struct sym_scopes *scopes, uint64_t vaddr)
{
	if (!sym_die_has(scopes->debug, &scopes->dies[0], vaddr))
		return false;
	scopes->n = 1;
	go_down(scopes, vaddr);
	return true;
}

size_t sym_scopes_inlined(struct sym_scopes *scopes)
{
	size_t i = scopes->n - 1;

	while (i && !sym_is_inlined(&scopes->dies[i]))
		i--;
	return i;
}

bool sym_scopes_find(struct kymo_debug *debug, uint64_t vaddr, struct sym_scopes *ret)
{
	size_t at = range_before(debug, ranges_up_to(debug, vaddr), vaddr);
	const bool is_told = at;

	for (; at; at = range_before(debug, at - 1, vaddr))
		if (find_in_unit(debug, debug->ranges.items[at - 1].unit, vaddr, ret))
			return true;
	/* Some assemblers and linkers leave the ranges of units out. */
	for (size_t i = 0; !is_told && i < debug->units.n && sym_debug_spend(debug, 1); i++)
		if (debug->units.items[i].is_unplaced && find_in_unit(debug, i, vaddr, ret))
			return true;
	return false;
}

const char *sym_scope_name(struct kymo_debug *debug, struct sym_scopes *scopes, size_t i)
{
	return sym_die_name(debug, &scopes->dies[i]);
}

/* ---- what is missing --------------------------------------------------------------------------------- */

const char *sym_missing_file(struct kymo_debug *debug, uint64_t vaddr)
{
	const ptrdiff_t at = sym_unit_at(debug, vaddr);
	struct sym_unit *unit = at < 0 ? NULL : &debug->units.items[at];
	Dwarf_Attribute name;

	/* libdw has found no other file, so the unit has what is in the program's alone. */
	if (!unit || unit->die.addr != unit->skeleton.addr)
		return NULL;
	if (!dwarf_attr(&unit->skeleton, DW_AT_dwo_name, &name) &&
	    !dwarf_attr(&unit->skeleton, DW_AT_GNU_dwo_name, &name))
		return NULL;
	return dwarf_formstring(&name);
}

struct kymo_error *sym_no_function(struct kymo_debug *debug, uint64_t vaddr)
{
	const char *missing = sym_missing_file(debug, vaddr), *path = kymo_module_path(debug->module);

	return missing ? kymo_error_create(KYMO_ERROR_NOT_FOUND,
					   "the debug information of %s is split, and %s, which has that of 0x%" PRIx64
					   ", is missing (kymo reads no .dwp)",
					   path, missing, vaddr)
		       : kymo_error_create(KYMO_ERROR_NOT_FOUND,
					   "the debug information of %s has no function at 0x%" PRIx64, path, vaddr);
}
