/* Members, read when they are asked for. */
#include "sym/debug_members.h"

#include <string.h>

#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_types.h"

#define MEMBERS_MAX 65536
#define NESTING_MAX 16
#define STEPS_MAX (1u << 20) /* members that are looked at: those within structures without names become many */

struct walk {
	struct kymo_debug *debug;
	KYMO_VEC(struct kymo_ctype_member) members;
	unsigned int depth, steps;
	bool keeps_whole; /* structures without names are members, and theirs are not */
};

static void walk_in(struct walk *walk, Dwarf_Die *type, uint64_t offset);

/* A constant, or an expression that adds one (DWARF 2). False: it is computed, as where virtual bases are. */
static bool byte_offset(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_data_member_location, &attribute)) {
		*ret = 0;
		return true;
	}
	if (sym_die_number(die, DW_AT_data_member_location, ret))
		return *ret < INT64_MAX;
	if (dwarf_getlocation(&attribute, &ops, &n) || n != 1 || ops->atom != DW_OP_plus_uconst)
		return false;
	*ret = ops->number;
	return *ret < INT64_MAX;
}

/* The first bit, counted from the lowest bit of the structure. */
static bool first_bit(Dwarf_Die *die, uint64_t size, uint64_t bits, uint64_t *ret)
{
	uint64_t bytes, storage;
	int64_t from_top;

	if (sym_die_number(die, DW_AT_data_bit_offset, ret))
		return *ret < INT64_MAX;
	if (!byte_offset(die, &bytes) || bytes >= INT64_MAX / 16)
		return false;
	if (!sym_die_signed(die, DW_AT_bit_offset, &from_top)) {
		*ret = bytes * 8;
		return true;
	}
	if (!sym_die_number(die, DW_AT_byte_size, &storage))
		storage = size;
	if (storage > 16 || from_top > 1024 || from_top < -1024)
		return false;
	*ret = bytes * 8 + storage * 8 - (uint64_t)from_top - bits;
	return *ret < INT64_MAX;
}

static bool place_bits(Dwarf_Die *die, uint64_t bits, struct kymo_ctype_member *member)
{
	const uint64_t size = member->type->size;
	uint64_t first;

	if (!bits || bits > 64 || (size != 1 && size != 2 && size != 4 && size != 8) || bits > size * 8 ||
	    !first_bit(die, size, bits, &first))
		return false;
	member->offset = first / 8 / size * size;
	/* Packed ones may lie across what is aligned. */
	if (first - member->offset * 8 + bits > size * 8)
		member->offset = first / 8;
	first -= member->offset * 8;
	if (first + bits > size * 8)
		return false;
	member->bit_size = (uint8_t)bits;
	member->bit_shift = (uint8_t)first;
	return true;
}

static void push_member(struct walk *walk, struct kymo_ctype_member member)
{
	if (walk->members.n < MEMBERS_MAX && !kymo_vec_push(&walk->members, member))
		walk->debug->is_out_of_memory = true;
}

/* The members of the structure that this member, or base class, is. */
static void flatten(struct walk *walk, Dwarf_Die *die, uint64_t offset)
{
	Dwarf_Die type, peeled;

	if (walk->depth >= NESTING_MAX || !sym_die_reference(die, DW_AT_type, &type) ||
	    !sym_die_peel(&type, &peeled, NULL, NULL))
		return;
	walk->depth++;
	walk_in(walk, &peeled, offset);
	walk->depth--;
}

static void add_member(struct walk *walk, Dwarf_Die *die, uint64_t offset)
{
	struct kymo_ctype_member member = { .name = sym_die_name(walk->debug, die) };
	const bool is_base = dwarf_tag(die) == DW_TAG_inheritance;
	uint64_t bits = 0;

	if (dwarf_hasattr(die, DW_AT_external) || sym_die_flag(die, DW_AT_declaration))
		return; /* static */
	member.type = sym_type_of(walk->debug, die);
	if (sym_die_number(die, DW_AT_bit_size, &bits) && bits) {
		if (!place_bits(die, bits, &member))
			return;
	} else {
		uint64_t bit;

		if (sym_die_number(die, DW_AT_data_bit_offset, &bit))
			member.offset = bit / 8;
		else if (!byte_offset(die, &member.offset))
			return;
	}
	member.offset += offset;
	if (is_base)
		member.name = NULL;
	member.is_base = is_base;
	if (member.name || is_base || walk->keeps_whole)
		push_member(walk, member);
	if (!member.name && !walk->keeps_whole && sym_type_is_aggregate(member.type))
		flatten(walk, die, member.offset);
}

static void walk_in(struct walk *walk, Dwarf_Die *type, uint64_t offset)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(type, &die);
	     is_there && walk->members.n < MEMBERS_MAX && ++walk->steps < STEPS_MAX && !walk->debug->is_out_of_memory;
	     is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_member || tag == DW_TAG_inheritance)
			add_member(walk, &die, offset);
		/* What values of Rust's enumerations hold. */
		if ((tag == DW_TAG_variant_part || tag == DW_TAG_variant) && walk->depth < NESTING_MAX) {
			walk->depth++;
			walk_in(walk, &die, offset);
			walk->depth--;
		}
	}
}

static struct kymo_error *find_members(struct kymo_debug *debug, const struct kymo_ctype *type, bool keeps_whole,
				       const struct kymo_ctype_member **ret, size_t *n_ret)
{
	struct sym_type *known = sym_type_know(debug, type);
	struct walk walk = { .debug = debug, .keeps_whole = keeps_whole };
	struct kymo_error *error;
	struct sym_members *members;

	*ret = NULL;
	*n_ret = 0;
	if (!known || !known->has_die || !sym_type_is_aggregate(type))
		return NULL;
	members = keeps_whole ? &known->parts : &known->members;
	if (!members->is_known) {
		sym_type_complete(debug, known);
		walk_in(&walk, known->is_complete ? &known->complete : &known->die, 0);
		members->items = sym_debug_copy(debug, walk.members.items, walk.members.n, sizeof(*walk.members.items));
		members->n = walk.members.n;
		kymo_vec_deinit(&walk.members);
		error = sym_debug_end(debug);
		if (error)
			return error;
		members->is_known = true;
	}
	*ret = members->items;
	*n_ret = members->n;
	return NULL;
}

struct kymo_error *kymo_debug_members(struct kymo_debug *debug, const struct kymo_ctype *type,
				      const struct kymo_ctype_member **ret, size_t *n_ret)
{
	return find_members(debug, type, false, ret, n_ret);
}

struct kymo_error *kymo_debug_parts(struct kymo_debug *debug, const struct kymo_ctype *type,
				    const struct kymo_ctype_member **ret, size_t *n_ret)
{
	return find_members(debug, type, true, ret, n_ret);
}
