/*
 * System V ABI for x86-64, 3.2.3: a structure of at most 8 bytes is returned in memory if a part of it is not aligned.
 * Else it is in xmm0 if it has only floating-point numbers, or in rax. C++ returns objects in memory whose copies or
 * ends are more than those of their bytes (Itanium C++ ABI, 3.1.3). Compilers may say so (DW_AT_calling_convention);
 * g++ does not.
 */
#include "sym/debug_returned.h"

#include <string.h>

#include "sym/debug_die.h"
#include "sym/debug_types.h"

#define NESTING_MAX 16
#define STEPS_MAX 4096
#define IN_CLASS 1 /* DW_DEFAULTED_in_class */

struct walk {
	struct kymo_debug *debug;
	unsigned int depth, steps;
	bool has_integers, has_vectors, has_gnu_vectors, is_in_memory, is_unknown;
};

static void classify_entry(struct walk *walk, Dwarf_Die *die, uint64_t offset);

/* ---- classes of C++ -------------------------------------------------------------------------- */

/* Whether its second parameter, after "this", is a reference to its class. */
static bool takes_its_class(Dwarf_Die *function, Dwarf_Die *class)
{
	Dwarf_Die die, reference, target;
	unsigned int n = 0;

	for (bool is_there = sym_die_first(function, &die); is_there; is_there = sym_die_next(&die)) {
		if (dwarf_tag(&die) != DW_TAG_formal_parameter || ++n < 2)
			continue;
		return sym_die_reference(&die, DW_AT_type, &reference) &&
		       (dwarf_tag(&reference) == DW_TAG_reference_type ||
			dwarf_tag(&reference) == DW_TAG_rvalue_reference_type) &&
		       sym_die_reference(&reference, DW_AT_type, &target) &&
		       sym_die_peel(&target, &target, NULL, NULL) && sym_die_is(&target, class);
	}
	return false;
}

/* A constructor is called as its class, without what that is a template of. */
static bool is_same_word(const char *a, const char *b)
{
	const size_t n = strcspn(a, "<");

	return n == strcspn(b, "<") && !memcmp(a, b, n);
}

/* Whether the function may keep objects of its class from being returned in a register. */
static bool is_special(struct walk *walk, Dwarf_Die *function, Dwarf_Die *class)
{
	const char *name = sym_die_name(walk->debug, function), *of = sym_die_name(walk->debug, class);
	uint64_t defaulted = 0, virtuality = 0;

	if (sym_die_number(function, DW_AT_virtuality, &virtuality) && virtuality)
		return true;
	if (sym_die_flag(function, DW_AT_artificial) || !name ||
	    (sym_die_number(function, DW_AT_defaulted, &defaulted) && defaulted == IN_CLASS))
		return false;
	return *name == '~' || (of && is_same_word(of, name) && takes_its_class(function, class));
}

/* ---- what a type is made of ------------------------------------------------------------------ */

static void look_at_number(struct walk *walk, bool is_vector, uint64_t size, uint64_t alignment, uint64_t offset)
{
	walk->has_vectors |= is_vector;
	walk->has_integers |= !is_vector;
	walk->is_unknown |= size != 1 && size != 2 && size != 4 && size != 8;
	walk->is_in_memory |= alignment && offset % alignment;
}

static void look_at_base(struct walk *walk, Dwarf_Die *type, uint64_t offset)
{
	uint64_t size = 0, encoding = 0;

	if (!sym_die_number(type, DW_AT_encoding, &encoding) || !sym_die_number(type, DW_AT_byte_size, &size))
		walk->is_unknown = true;
	else if (encoding == DW_ATE_complex_float)
		look_at_number(walk, true, size, size / 2, offset);
	else
		look_at_number(walk, encoding == DW_ATE_float || encoding == DW_ATE_decimal_float, size, size, offset);
}

static void look_at_array(struct walk *walk, Dwarf_Die *type, uint64_t offset)
{
	const struct kymo_ctype *array = sym_type_at(walk->debug, type);

	walk->has_gnu_vectors |= (bool)dwarf_hasattr(type, DW_AT_GNU_vector);
	if (array->size) /* one without elements holds nothing */
		classify_entry(walk, type, offset);
}

static void look_at_member(struct walk *walk, Dwarf_Die *member, uint64_t offset)
{
	uint64_t bits = 0, at = 0;

	if (dwarf_hasattr(member, DW_AT_external) || sym_die_flag(member, DW_AT_declaration))
		return; /* static */
	if (sym_die_number(member, DW_AT_bit_size, &bits)) {
		walk->has_integers = true;
		return;
	}
	if (dwarf_hasattr(member, DW_AT_data_member_location) &&
	    !sym_die_number(member, DW_AT_data_member_location, &at)) {
		walk->is_unknown = true; /* it is computed */
		return;
	}
	classify_entry(walk, member, offset + at);
}

static void look_at_members(struct walk *walk, Dwarf_Die *type, uint64_t offset)
{
	struct sym_type *known = sym_type_know(walk->debug, sym_type_at(walk->debug, type));
	uint64_t convention = 0;
	Dwarf_Die *whole, die;

	if (!known) {
		walk->is_unknown = true;
		return;
	}
	sym_type_complete(walk->debug, known);
	whole = known->is_complete ? &known->complete : &known->die;
	sym_die_number(whole, DW_AT_calling_convention, &convention);
	walk->is_unknown |= sym_die_flag(whole, DW_AT_declaration);
	walk->is_in_memory |= convention == DW_CC_pass_by_reference;
	for (bool is_there = sym_die_first(whole, &die); is_there; is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);

		if (++walk->steps > STEPS_MAX) {
			walk->is_unknown = true;
			return;
		}
		if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			look_at_member(walk, &die, offset);
		else if (tag == DW_TAG_subprogram && !convention)
			walk->is_unknown |= is_special(walk, &die, whole);
		else if (tag == DW_TAG_variant_part)
			walk->is_unknown = true;
	}
}

/* The type of the entry, at `offset` of what is returned. */
static void classify_entry(struct walk *walk, Dwarf_Die *die, uint64_t offset)
{
	Dwarf_Die type, below;
	uint64_t size = 0;

	if (walk->depth == NESTING_MAX || walk->steps++ > STEPS_MAX || !sym_die_reference(die, DW_AT_type, &type) ||
	    !sym_die_peel(&type, &type, NULL, NULL)) {
		walk->is_unknown = true;
		return;
	}
	walk->depth++;
	switch (dwarf_tag(&type)) {
	case DW_TAG_base_type:
		look_at_base(walk, &type, offset);
		break;
	case DW_TAG_enumeration_type:
		if (!sym_die_number(&type, DW_AT_byte_size, &size) && sym_die_reference(&type, DW_AT_type, &below))
			classify_entry(walk, &type, offset);
		else
			look_at_number(walk, false, size, size, offset);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		look_at_number(walk, false, 8, 8, offset);
		break;
	case DW_TAG_array_type:
		look_at_array(walk, &type, offset);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		look_at_members(walk, &type, offset);
		break;
	default:
		walk->is_unknown = true;
	}
	walk->depth--;
}

/* ---- the whole ------------------------------------------------------------------------------- */

enum kymo_returned sym_returned(struct kymo_debug *debug, Dwarf_Die *function, bool is_c_like)
{
	const struct kymo_ctype *type = sym_type_of(debug, function);
	struct walk walk = { .debug = debug };

	if (type->kind == KYMO_CTYPE_ARRAY || type->kind == KYMO_CTYPE_OTHER)
		return KYMO_RETURNED_UNKNOWN;
	if (!sym_type_is_aggregate(type) && type->size > 8)
		return KYMO_RETURNED_UNKNOWN;
	if (!sym_type_is_aggregate(type))
		return type->kind == KYMO_CTYPE_FLOAT ? KYMO_RETURNED_VECTOR : KYMO_RETURNED_INTEGER;
	if (!is_c_like)
		return KYMO_RETURNED_UNKNOWN;
	classify_entry(&walk, function, 0);
	if (walk.has_gnu_vectors) /* of 32 or 64 bytes, perhaps, in ymm0 or zmm0 */
		return KYMO_RETURNED_UNKNOWN;
	if (walk.is_in_memory || type->size > 16)
		return KYMO_RETURNED_MEMORY;
	if (walk.is_unknown || type->size > 8 || (!walk.has_integers && !walk.has_vectors))
		return KYMO_RETURNED_UNKNOWN;
	return walk.has_integers ? KYMO_RETURNED_INTEGER : KYMO_RETURNED_VECTOR;
}
