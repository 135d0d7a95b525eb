/*
 * Two sources agree on where a parameter is when its function is entered: a location that holds at this address, and
 * the calling convention (System V ABI for x86-64, 3.2.3). The location is believed where it is a register. A location
 * in the frame is one that the function's beginning is yet to fill; then the convention holds, for as long as all
 * parameters before are of kinds whose registers are certain.
 */

#include "sym/debug_entry.h"

#include "base/cleanup.h"
#include "sym/debug_die.h"
#include "sym/debug_unit.h"
#include "sym/debug_variables.h"

/* Registers that pass integers and pointers, in order, by their DWARF numbers: rdi rsi rdx rcx r8 r9. */
static const uint8_t registers[] = { 5, 4, 1, 2, 8, 9 };

#define RBP 6
#define RSP 7
#define VECTORS 8 /* that pass floating-point numbers */

enum passed { IN_REGISTER, IN_VECTOR, IN_MEMORY, UNKNOWN };

static enum passed base_type_passed(Dwarf_Die *type)
{
	uint64_t size = 0, encoding = 0;

	if (!sym_die_number(type, DW_AT_encoding, &encoding) || !sym_die_number(type, DW_AT_byte_size, &size))
		return UNKNOWN;
	if (encoding == DW_ATE_float && size == 16)
		return IN_MEMORY;
	if (encoding == DW_ATE_float)
		return size == 4 || size == 8 ? IN_VECTOR : UNKNOWN;
	return size == 1 || size == 2 || size == 4 || size == 8 ? IN_REGISTER : UNKNOWN;
}

static bool entry_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Die type;

	return sym_die_reference(die, DW_AT_type, &type) && sym_die_peel(&type, ret, NULL, NULL);
}

static enum passed type_passed(Dwarf_Die *type)
{
	uint64_t size = 0;
	Dwarf_Die below;

	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return IN_REGISTER;
	case DW_TAG_base_type:
		return base_type_passed(type);
	case DW_TAG_enumeration_type:
		if (entry_type(type, &below))
			return base_type_passed(&below);
		sym_die_number(type, DW_AT_byte_size, &size);
		return size == 1 || size == 2 || size == 4 || size == 8 ? IN_REGISTER : UNKNOWN;
	default: /* a structure takes registers by what is in it, and in C++ by what its class does */
		return UNKNOWN;
	}
}

/* A structure that is returned may take the first register for where it goes. */
static bool returns_simply(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;

	if (!dwarf_attr_integrate(function, DW_AT_type, &attribute))
		return true; /* void */
	return entry_type(function, &type) && type_passed(&type) != UNKNOWN;
}

/* Why it is not known from the first parameter on what passes them; or NULL. */
static const char *why_lost(Dwarf_Die *function, const struct sym_unit *unit)
{
	if (!sym_unit_is_c_like(unit))
		return "is in a frame that is not made yet here, and what passes it is not certain in its language; "
		       "name a "
		       "line of the function, as in FILE:SOURCE:LINE";
	return returns_simply(function)
		       ? NULL
		       : "may come after the address of what the function returns, which is not certain";
}

/* In C, by the function's definition: `float half(f) float f; { ... }`. */
static bool lacks_prototype(Dwarf_Die *function, const struct sym_unit *unit)
{
	Dwarf_Attribute attribute;

	return sym_language_has_tags(unit->language) && !dwarf_attr_integrate(function, DW_AT_prototyped, &attribute);
}

void sym_passing_init(struct sym_passing *passing, Dwarf_Die *function, const struct sym_unit *unit)
{
	*passing = (struct sym_passing){
		.why_lost = why_lost(function, unit),
		.is_promoted = lacks_prototype(function, unit),
	};
}

/* In memory, `offset` bytes from the stack pointer. */
static void set_stacked(struct sym_location *where, int64_t offset)
{
	struct kymo_form *form = &where->location.form;

	where->location.kind = KYMO_LOCATION_MEMORY;
	form->n = 3;
	form->ops[0] = (struct kymo_form_op){ KYMO_FORM_REGISTER, 0, 0, RSP };
	form->ops[1] = (struct kymo_form_op){ KYMO_FORM_VALUE, 0, 0, offset };
	form->ops[2] = (struct kymo_form_op){ KYMO_FORM_ADD, 0, 0, 0 };
}

/* What is in the caller's frame is filled before the call. The CFA is the stack pointer + 8 then, and the register
 * that will be the frame base will be the stack pointer - 8. */
static bool take_caller_frame(struct sym_location *where)
{
	const int64_t first = where->frame_register == RBP ? 16 : 0;

	if (where->frame_offset < first || (where->frame_register != RBP && where->frame_register != -1))
		return false;
	set_stacked(where, (int64_t)((uint64_t)where->frame_offset + (first ? -8ull : 8ull)));
	return true;
}

static void take_register(const struct sym_passing *passing, enum passed passed, struct sym_location *where)
{
	if (passing->why_lost)
		sym_location_nowhere(where, passing->why_lost);
	else if (passed == IN_MEMORY || passed == UNKNOWN)
		sym_location_nowhere(where, "is no integer and no pointer: its frame is not made yet here, and what "
					    "passes it is not certain");
	else if (passed == IN_REGISTER && passing->n < kymo_countof(registers))
		sym_location_register(where, registers[passing->n]);
	else if (passed == IN_VECTOR && passing->n_vectors < VECTORS)
		sym_location_vector(where, (unsigned int)passing->n_vectors);
	else if (passing->is_stack_lost)
		sym_location_nowhere(where, "is passed on the stack, after what has no certain size there");
	else
		set_stacked(where, (int64_t)(8 + 8 * passing->n_stacked)); /* after the return address */
}

void sym_passing_next(struct sym_passing *passing, Dwarf_Die *parameter, struct sym_location *where)
{
	enum passed passed = UNKNOWN;
	uint64_t size = 0;
	Dwarf_Die type;

	if (entry_type(parameter, &type)) {
		passed = type_passed(&type);
		sym_die_number(&type, DW_AT_byte_size, &size);
	}
	if (passing->is_promoted && passed == IN_VECTOR && size == 4)
		sym_location_nowhere(where, "is passed as a double here: its function is defined without a prototype");
	else if (where->is_in_frame && !take_caller_frame(where))
		take_register(passing, passed, where);
	passing->n_stacked += (passed == IN_REGISTER && passing->n >= kymo_countof(registers)) ||
			      (passed == IN_VECTOR && passing->n_vectors >= VECTORS);
	passing->n += passed == IN_REGISTER;
	passing->n_vectors += passed == IN_VECTOR;
	if (passed == UNKNOWN && !passing->why_lost)
		passing->why_lost = "comes after a structure that is passed by value";
	passing->is_stack_lost |= passed == IN_MEMORY;
}

void sym_entry_local(struct sym_location *where)
{
	if (where->is_in_frame && where->frame_register >= 0)
		sym_location_nowhere(where, "is in a frame that is not made yet here");
}
