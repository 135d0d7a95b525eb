/*
 * Structures back into shapes, as write_type.c writes them. Names that begin with "_" are the program's; others say
 * what a structure is (tsdl.h). The depth, the members of all together and the bytes of the whole are bounded.
 */
#include "ctf/parse_shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctf/parse_type.h"
#include "ctf/tsdl.h"

#define DIMENSIONS_MAX 16

struct parsing {
	struct parser *p;
	unsigned int depth, n_members;
};

/* A structure as far as it is read. */
struct reading {
	struct kymo_shape *shape;
	uint64_t bit;      /* where the next member begins */
	bool has_overlaid; /* members that begin at 0 as the first one does */
	bool is_left_out;  /* it has bytes in place of its members */
};

/* What is declared. */
struct declared {
	struct kymo_shape *shape;
	uint8_t n_bits;
	char *name;
	uint32_t dimensions[DIMENSIONS_MAX];
	unsigned int n_dimensions;
};

static bool parse_structure(struct parsing *parsing, struct kymo_shape **ret);

static void declared_deinit(struct declared *declared)
{
	kymo_shape_release(declared->shape);
	free(declared->name);
}

static bool fail(const struct parsing *parsing, const char *what)
{
	return kymo_parser_fail_at(parsing->p, parsing->p->now.line, "%s", what);
}

/* ---- declarations ---------------------------------------------------------------------------- */

static bool make_leaf(const struct parsing *parsing, const struct parsed_type *type, struct declared *ret)
{
	const bool is_real = kymo_type_is_real(type->type);

	if (!is_real && !kymo_type_is_integer(type->type))
		return fail(parsing, "a member has a type that structures do not have");
	ret->shape = kymo_shape_create(is_real ? KYMO_SHAPE_FLOAT : KYMO_SHAPE_INTEGER, kymo_type_size(type->type));
	if (!ret->shape)
		return kymo_parser_no_memory(parsing->p);
	ret->shape->is_signed = !is_real && kymo_type_is_signed(type->type);
	ret->shape->is_hex = !is_real && kymo_type_is_hex(type->type);
	ret->shape->naming = kymo_naming_share(type->naming);
	ret->n_bits = (uint8_t)type->n_bits;
	return true;
}

static bool parse_declared_type(struct parsing *parsing, struct declared *ret)
{
	struct parsed_type type;
	bool is_good;

	if (kymo_parser_at_mark(parsing->p, "struct"))
		return parse_structure(parsing, &ret->shape);
	is_good = kymo_parse_type(parsing->p, true, &type) && kymo_parser_advance(parsing->p) &&
		  make_leaf(parsing, &type, ret);
	kymo_naming_release(type.naming);
	return is_good;
}

/* The dimensions at "[", outermost first. */
static bool parse_dimensions(const struct parsing *parsing, struct declared *ret)
{
	uint64_t value;

	while (kymo_parser_at_mark(parsing->p, "[")) {
		if (ret->n_dimensions == DIMENSIONS_MAX)
			return fail(parsing, "an array has too many dimensions");
		if (!kymo_parser_expect(parsing->p, "[") ||
		    !kymo_parser_take_limited_number(parsing->p, KYMO_SHAPE_SIZE_MAX, &value) ||
		    !kymo_parser_expect(parsing->p, "]"))
			return false;
		ret->dimensions[ret->n_dimensions++] = (uint32_t)value;
	}
	return true;
}

/* Whether the first dimension is 0: it lies over the first member. */
static bool is_overlaid(const struct declared *declared)
{
	return declared->n_dimensions && !declared->dimensions[0];
}

/* The array of `n` of the shape in its place. Of x8 it is bytes. */
static bool wrap_array(const struct parsing *parsing, uint32_t n, bool is_innermost, struct declared *declared)
{
	struct kymo_shape *of = declared->shape, *array;
	const uint64_t size = (uint64_t)n * of->size;
	const bool is_bytes = is_innermost && of->kind == KYMO_SHAPE_INTEGER && of->is_hex && of->size == 1;

	if (!n || !size || size > KYMO_SHAPE_SIZE_MAX || declared->n_bits)
		return fail(parsing, "an array has no elements, or too many");
	array = kymo_shape_create(is_bytes ? KYMO_SHAPE_BYTES : KYMO_SHAPE_ARRAY, (uint32_t)size);
	if (!array)
		return kymo_parser_no_memory(parsing->p);
	if (is_bytes) {
		kymo_shape_release(of);
	} else {
		array->n = n;
		array->of = of;
	}
	declared->shape = array;
	return true;
}

static bool wrap_arrays(const struct parsing *parsing, struct declared *declared)
{
	const unsigned int first = is_overlaid(declared);

	for (unsigned int i = declared->n_dimensions; i > first; i--)
		if (!wrap_array(parsing, declared->dimensions[i - 1], i == declared->n_dimensions, declared))
			return false;
	return true;
}

/* "TYPE NAME[N];" */
static bool parse_declared(struct parsing *parsing, struct declared *ret)
{
	return parse_declared_type(parsing, ret) && kymo_parser_take_name(parsing->p, 0, &ret->name) &&
	       parse_dimensions(parsing, ret) && wrap_arrays(parsing, ret) && kymo_parser_expect(parsing->p, ";");
}

/* ---- members --------------------------------------------------------------------------------- */

static bool is_numbered(const char *name, const char *word)
{
	const size_t n = strlen(word);

	return !strncmp(name, word, n) && strspn(name + n, "0123456789") == strlen(name + n);
}

static uint64_t bits_of(const struct declared *declared)
{
	return declared->n_bits ? declared->n_bits : 8 * (uint64_t)declared->shape->size;
}

static bool is_empty(const struct declared *declared)
{
	return declared->shape->kind == KYMO_SHAPE_STRUCT && !declared->shape->size && !declared->n_dimensions;
}

/* What stands for no member: padding, and what is said of the structure. True in `is_ret`: it is taken. */
static bool take_own(const struct parsing *parsing, struct reading *to, const struct declared *declared, bool *is_ret)
{
	const char *name = declared->name;
	const bool is_cut = !strcmp(name, KYMO_TSDL_CUT);

	*is_ret = true;
	if (is_cut && is_empty(declared)) {
		to->shape->is_cut = true;
	} else if (!strcmp(name, KYMO_TSDL_UNION) && is_empty(declared)) {
		to->shape->kind = KYMO_SHAPE_UNION;
	} else if (is_cut || is_numbered(name, KYMO_TSDL_PADDING)) {
		to->is_left_out |= is_cut;
		to->bit += bits_of(declared);
	} else {
		*is_ret = false;
	}
	return to->bit <= 8 * KYMO_SHAPE_SIZE_MAX || fail(parsing, "a structure has too many bytes");
}

/* A member where the reading is. Its shape becomes the structure's. */
static bool add_member(const struct parsing *parsing, struct reading *to, struct declared *declared)
{
	enum kymo_shape_role role = KYMO_SHAPE_NAMED;
	const char *name = declared->name;
	const bool is_over = is_overlaid(declared);
	const uint64_t bit = is_over ? 0 : to->bit;

	if (*name == '_') {
		name++;
	} else if (is_numbered(name, KYMO_TSDL_ANONYMOUS)) {
		role = KYMO_SHAPE_ANONYMOUS;
	} else if (!strncmp(name, KYMO_TSDL_BASE, strlen(KYMO_TSDL_BASE))) {
		role = KYMO_SHAPE_BASE;
		name += strlen(KYMO_TSDL_BASE);
	} else {
		return fail(parsing, "a member has a name that is not known");
	}
	if (kymo_shape_has(to->shape, role, name))
		return fail(parsing, "a structure has two members of one name");
	if (bit % 8 && !declared->n_bits)
		return fail(parsing, "a member begins within a byte");
	to->has_overlaid |= is_over;
	to->bit += is_over ? 0 : bits_of(declared);
	if (to->bit > 8 * KYMO_SHAPE_SIZE_MAX)
		return fail(parsing, "a structure has too many bytes");
	return kymo_shape_add(to->shape, role, name, strlen(name), (uint32_t)bit, declared->n_bits,
			      kymo_take(declared->shape)) ||
	       kymo_parser_no_memory(parsing->p);
}

static bool parse_member(struct parsing *parsing, struct reading *to)
{
	kymo_cleanup(declared_deinit) struct declared declared = { .shape = NULL };
	bool is_own;

	if (++parsing->n_members > 8 * KYMO_SHAPE_MEMBERS_MAX)
		return fail(parsing, "a structure has too many members");
	return parse_declared(parsing, &declared) && take_own(parsing, to, &declared, &is_own) &&
	       (is_own || add_member(parsing, to, &declared));
}

/* ---- structures ------------------------------------------------------------------------------ */

/* Its size, and what it is. A UNION's members lie over each other within it. */
static bool finish(const struct parsing *parsing, struct reading *to)
{
	struct kymo_shape *shape = to->shape;
	uint64_t end = 0;

	if (to->bit % 8)
		return fail(parsing, "a structure ends within a byte");
	shape->size = (uint32_t)(to->bit / 8);
	if (to->is_left_out) {
		if (shape->n || shape->kind == KYMO_SHAPE_UNION)
			return fail(parsing, "a structure has members that are left out");
		shape->kind = KYMO_SHAPE_BYTES;
		shape->is_cut = true;
	}
	for (uint32_t i = 0; i < shape->n; i++) {
		const struct kymo_shape_member *member = &shape->members[i];

		end = member->bit + (member->n_bits ? member->n_bits : 8 * (uint64_t)member->shape->size);
		if (end > to->bit || (shape->kind == KYMO_SHAPE_UNION && member->bit))
			return fail(parsing, "a member is larger than its structure");
	}
	return !to->has_overlaid || shape->kind == KYMO_SHAPE_UNION ||
	       fail(parsing, "a structure has members over each other");
}

static bool parse_members(struct parsing *parsing, struct reading *to)
{
	if (!kymo_parser_expect(parsing->p, "struct {"))
		return false;
	while (!kymo_parser_at_mark(parsing->p, "}"))
		if (!parse_member(parsing, to))
			return false;
	return kymo_parser_advance(parsing->p) && finish(parsing, to);
}

static bool parse_structure(struct parsing *parsing, struct kymo_shape **ret)
{
	struct reading to = { .shape = kymo_shape_create(KYMO_SHAPE_STRUCT, 0) };
	bool is_good;

	if (!to.shape)
		return kymo_parser_no_memory(parsing->p);
	is_good = parsing->depth++ <= KYMO_SHAPE_DEPTH_MAX ? parse_members(parsing, &to)
							   : fail(parsing, "a structure is too deep");
	parsing->depth--;
	if (is_good)
		*ret = to.shape;
	else
		kymo_shape_release(to.shape);
	return is_good;
}

bool kymo_parse_shape(struct parser *p, struct kymo_shape **ret)
{
	struct parsing parsing = { .p = p };
	const unsigned int line = p->now.line;

	if (!parse_structure(&parsing, ret))
		return false;
	if ((*ret)->size)
		return true;
	kymo_shape_release(*ret);
	*ret = NULL;
	return kymo_parser_fail_at(p, line, "a structure has no bytes");
}
