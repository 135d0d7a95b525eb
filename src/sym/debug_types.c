/*
 * One object a type and entry: they are found by the address of the entry in memory. A type is in the table before what
 * it points to is made, so that types in a circle come to an end.
 */
#include "sym/debug_types.h"

#include <stdlib.h>
#include <string.h>

#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_names.h"
#include "sym/debug_typename.h"
#include "sym/debug_unit.h"

static const struct kymo_ctype void_type = { .kind = KYMO_CTYPE_VOID, .name = "void" };
static const struct kymo_ctype lost_type = { .kind = KYMO_CTYPE_OTHER, .name = "(damaged type)" };

static const struct kymo_ctype *make_type(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth);

const struct kymo_ctype *sym_type_void(void)
{
	return &void_type;
}

/* ---- the table ------------------------------------------------------------------------------- */

static size_t bucket_of(const struct kymo_debug *debug, const void *at, unsigned int dimension)
{
	return (((uintptr_t)at * 0x9e3779b97f4a7c15ull >> 20) + dimension) & (debug->n_type_buckets - 1);
}

static void put_into_bucket(struct kymo_debug *debug, uint32_t number)
{
	const struct sym_type *type = debug->types.items[number - 1];
	size_t i;

	if (!type->has_die)
		return;
	for (i = bucket_of(debug, type->die.addr, type->dimension); debug->type_buckets[i];)
		i = (i + 1) & (debug->n_type_buckets - 1);
	debug->type_buckets[i] = number;
}

static bool grow_index(struct kymo_debug *debug)
{
	const size_t n = debug->n_type_buckets ? debug->n_type_buckets * 2 : 256;
	uint32_t *buckets;

	if (debug->n_type_buckets && debug->types.n * 2 < debug->n_type_buckets)
		return true;
	buckets = calloc(n, sizeof(*buckets));
	if (!buckets)
		return false;
	free(debug->type_buckets);
	debug->type_buckets = buckets;
	debug->n_type_buckets = n;
	for (uint32_t i = 1; i <= debug->types.n; i++)
		put_into_bucket(debug, i);
	return true;
}

static struct sym_type *find_numbered_type(const struct kymo_debug *debug, Dwarf_Die *die, unsigned int dimension)
{
	if (!debug->n_type_buckets)
		return NULL;
	for (size_t i = bucket_of(debug, die->addr, dimension); debug->type_buckets[i];
	     i = (i + 1) & (debug->n_type_buckets - 1)) {
		struct sym_type *type = debug->types.items[debug->type_buckets[i] - 1];

		if (type->die.addr == die->addr && type->dimension == dimension)
			return type;
	}
	return NULL;
}

/* A new type in the table, of the entry or of none. */
static struct sym_type *add_type(struct kymo_debug *debug, Dwarf_Die *die, unsigned int dimension)
{
	struct sym_type *type = sym_debug_alloc(debug, sizeof(*type));

	if (!type || !grow_index(debug) || !kymo_vec_push(&debug->types, type)) {
		debug->is_out_of_memory = true;
		return NULL;
	}
	type->type.name = "";
	type->type.origin = debug->types.n;
	type->dimension = dimension;
	if (die) {
		type->die = *die;
		type->has_die = true;
		put_into_bucket(debug, (uint32_t)debug->types.n);
	}
	return type;
}

struct sym_type *sym_type_know(struct kymo_debug *debug, const struct kymo_ctype *type)
{
	struct sym_type *known =
		type && type->origin && type->origin <= debug->types.n ? debug->types.items[type->origin - 1] : NULL;

	return known && &known->type == type ? known : NULL;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void fill_base(struct sym_type *type)
{
	struct kymo_ctype *ret = &type->type;
	uint64_t encoding = 0;

	sym_die_number(&type->die, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean:
		ret->kind = KYMO_CTYPE_BOOLEAN;
		break;
	case DW_ATE_signed:
	case DW_ATE_unsigned:
	case DW_ATE_address:
		ret->kind = KYMO_CTYPE_INTEGER;
		break;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
	case DW_ATE_ASCII:
	case DW_ATE_UCS:
		ret->kind = KYMO_CTYPE_CHARACTER;
		break;
	case DW_ATE_float:
		ret->kind = KYMO_CTYPE_FLOAT;
		break;
	default:
		ret->kind = KYMO_CTYPE_OTHER;
	}
	ret->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

/* The sign of an enumeration is that of its base type, or of its least value. */
static bool is_signed_enum(Dwarf_Die *type)
{
	Dwarf_Die below, die;
	uint64_t encoding;
	int64_t value;

	if (sym_die_reference(type, DW_AT_type, &die) && sym_die_peel(&die, &below, NULL, NULL) &&
	    sym_die_number(&below, DW_AT_encoding, &encoding))
		return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	for (bool is_there = sym_die_first(type, &die); is_there; is_there = sym_die_next(&die))
		if (dwarf_tag(&die) == DW_TAG_enumerator && sym_die_signed(&die, DW_AT_const_value, &value) &&
		    value < 0)
			return true;
	return false;
}

static const struct kymo_ctype *below(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth)
{
	Dwarf_Die die;

	return sym_die_reference(type, DW_AT_type, &die) ? make_type(debug, &die, depth + 1) : &void_type;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* `type` is dimension `type->dimension` of its array; those further in are types of their own. */
static void fill_array(struct kymo_debug *debug, struct sym_type *type, unsigned int depth)
{
	uint64_t n = 0, inner;

	type->type.kind = KYMO_CTYPE_ARRAY;
	sym_array_dimension(&type->die, type->dimension, &n);
	type->type.n = n;
	if (type->dimension)
		type->type.name = sym_typename_of_array(debug, &type->die, type->dimension);
	if (depth < SYM_CHAIN_MAX && sym_array_dimension(&type->die, type->dimension + 1, &inner)) {
		struct sym_type *next = find_numbered_type(debug, &type->die, type->dimension + 1);

		if (!next) {
			next = add_type(debug, &type->die, type->dimension + 1);
			if (next)
				fill_array(debug, next, depth + 1);
		}
		type->type.of = next ? &next->type : &lost_type;
	} else {
		type->type.of = below(debug, &type->die, depth);
	}
	type->type.size = multiply(n, type->type.of->size);
}

static void fill_aggregate(struct sym_type *type, enum kymo_ctype_kind kind)
{
	type->type.kind = kind;
	type->is_declaration = sym_die_flag(&type->die, DW_AT_declaration);
}

static void fill_type(struct kymo_debug *debug, struct sym_type *type, unsigned int depth)
{
	struct kymo_ctype *ret = &type->type;
	uint64_t size;

	if (sym_die_number(&type->die, DW_AT_byte_size, &size))
		ret->size = size;
	switch (dwarf_tag(&type->die)) {
	case DW_TAG_base_type:
		fill_base(type);
		break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		ret->kind = KYMO_CTYPE_POINTER;
		ret->size = ret->size ? ret->size : 8;
		ret->of = below(debug, &type->die, depth);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		fill_aggregate(type, KYMO_CTYPE_STRUCT);
		break;
	case DW_TAG_union_type:
		fill_aggregate(type, KYMO_CTYPE_UNION);
		break;
	case DW_TAG_enumeration_type:
		fill_aggregate(type, KYMO_CTYPE_ENUM);
		ret->is_signed = is_signed_enum(&type->die);
		break;
	case DW_TAG_array_type:
		fill_array(debug, type, depth);
		break;
	case DW_TAG_subroutine_type:
		ret->kind = KYMO_CTYPE_FUNCTION;
		ret->size = 0;
		break;
	default:
		ret->kind = KYMO_CTYPE_OTHER;
	}
}

/* ---- making ---------------------------------------------------------------------------------- */

/* A structure without a name is called as the typedef that names it. */
static const char *type_name(struct kymo_debug *debug, Dwarf_Die *type, Dwarf_Die *alias, bool has_alias)
{
	const int tag = dwarf_tag(type);

	if (has_alias && !dwarf_hasattr(type, DW_AT_name) &&
	    (tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_class_type ||
	     tag == DW_TAG_enumeration_type))
		type = alias;
	return sym_typename(debug, type);
}

static const struct kymo_ctype *make_type(struct kymo_debug *debug, Dwarf_Die *die, unsigned int depth)
{
	Dwarf_Die peeled, alias;
	struct sym_type *type;
	bool has_alias = false;

	if (depth > SYM_CHAIN_MAX)
		return &lost_type;
	if (!sym_die_peel(die, &peeled, &alias, &has_alias))
		return &void_type;
	type = find_numbered_type(debug, &peeled, 0);
	if (type)
		return &type->type;
	type = add_type(debug, &peeled, 0);
	if (!type)
		return &lost_type;
	type->type.name = type_name(debug, &peeled, &alias, has_alias);
	fill_type(debug, type, depth);
	return &type->type;
}

const struct kymo_ctype *sym_type_at(struct kymo_debug *debug, Dwarf_Die *type)
{
	return make_type(debug, type, 0);
}

const struct kymo_ctype *sym_type_of(struct kymo_debug *debug, Dwarf_Die *die)
{
	return below(debug, die, 0);
}

const char *sym_declared_type(struct kymo_debug *debug, Dwarf_Die *die)
{
	Dwarf_Die type;

	return sym_typename(debug, sym_die_reference(die, DW_AT_type, &type) ? &type : NULL);
}

void sym_type_complete(struct kymo_debug *debug, struct sym_type *type)
{
	const int tag = dwarf_tag(&type->die);
	const struct sym_name *found = NULL;
	const char *name;

	if (!type->is_declaration || !type->has_die)
		return;
	name = sym_qualified_name(debug, &type->die);
	while (name && (found = sym_name_find(debug, name, strlen(name), found))) {
		Dwarf_Die die = found->die;
		uint64_t size;
		const int other = dwarf_tag(&die);
		/* C++ may declare with "struct" what it defines with "class". */
		const bool is_same = other == tag || (tag == DW_TAG_structure_type && other == DW_TAG_class_type) ||
				     (tag == DW_TAG_class_type && other == DW_TAG_structure_type);

		if (found->kind != SYM_NAME_TYPE || found->is_declaration || !is_same)
			continue;
		type->is_declaration = false;
		if (sym_die_number(&die, DW_AT_byte_size, &size))
			type->type.size = size;
		/* Its entry in the table stays where it is found: under the declaration. */
		type->complete = die;
		type->is_complete = true;
		return;
	}
	type->is_declaration = false;
}

const struct kymo_ctype *kymo_debug_pointer(struct kymo_debug *debug, const struct kymo_ctype *type)
{
	struct sym_type *known = sym_type_know(debug, type), *pointer;
	const char *name = type->name;

	if (known && known->pointer)
		return known->pointer;
	pointer = add_type(debug, NULL, 0);
	debug->is_out_of_memory = false;
	if (!pointer)
		return NULL;
	pointer->type = (struct kymo_ctype){ KYMO_CTYPE_POINTER, "", 8, false, type, 0, pointer->type.origin };
	pointer->type.name = sym_debug_format(debug, "%s%s*", name, *name && name[strlen(name) - 1] == '*' ? "" : " ");
	if (known)
		known->pointer = &pointer->type;
	return &pointer->type;
}
