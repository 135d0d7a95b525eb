/*
 * A structure of the source, as a tree of what its bytes mean. What debug information says is not trusted. Types that
 * contain themselves end at the depth, and so does the number of members. What lies beyond its structure or over
 * another member is left out.
 */
#include "expr/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "expr/naming.h"

struct making {
	const struct kymo_expr_names *names;
	struct kymo_shape_limits limits;
	unsigned int n_members, nesting;
	struct kymo_error *error;
};

static struct kymo_shape *make(struct making *making, const struct kymo_ctype *type, unsigned int depth);

static struct kymo_shape *fail(struct making *making, struct kymo_error *error)
{
	if (making->error)
		kymo_error_destroy(error);
	else
		making->error = error;
	return NULL;
}

/* NULL where nothing is known of the value, and with an error. */
static struct kymo_shape *create(struct making *making, enum kymo_shape_kind kind, uint64_t size)
{
	struct kymo_shape *shape;

	if (size > KYMO_SHAPE_SIZE_MAX && kind != KYMO_SHAPE_STRUCT)
		return NULL;
	shape = kymo_shape_create(kind, size < UINT32_MAX ? (uint32_t)size : UINT32_MAX);
	return shape ? shape : fail(making, &kymo_error_no_memory);
}

static struct kymo_shape *make_bytes(struct making *making, const struct kymo_ctype *type, bool is_cut)
{
	struct kymo_shape *shape = type->size ? create(making, KYMO_SHAPE_BYTES, type->size) : NULL;

	if (shape)
		shape->is_cut = is_cut;
	return shape;
}

static struct kymo_shape *make_integer(struct making *making, const struct kymo_ctype *type)
{
	const struct kymo_expr_type value = kymo_expr_type_of(type);
	const enum kymo_expr_class class = kymo_expr_class_of(value);
	struct kymo_shape *shape;
	struct kymo_error *error;

	if (class != KYMO_EXPR_INTEGER && (class != KYMO_EXPR_POINTER || type->size != 8))
		return make_bytes(making, type, false);
	shape = create(making, KYMO_SHAPE_INTEGER, type->size);
	if (!shape)
		return NULL;
	shape->is_hex = class == KYMO_EXPR_POINTER;
	shape->is_signed = !shape->is_hex && type->is_signed;
	if (type->kind == KYMO_CTYPE_CHARACTER && type->size == 1) {
		shape->naming = kymo_naming_characters();
		return shape;
	}
	error = kymo_expr_naming(making->names, value, &shape->naming);
	if (!error)
		return shape;
	kymo_shape_release(shape);
	return fail(making, error);
}

/* Of "char" they are text, of other characters bytes. */
static struct kymo_shape *make_array(struct making *making, const struct kymo_ctype *type, unsigned int depth)
{
	const struct kymo_ctype *of = type->of;
	struct kymo_shape *shape, *element;

	if (!of || !type->n || type->n > KYMO_SHAPE_SIZE_MAX || making->nesting == KYMO_SHAPE_DEPTH_MAX)
		return make_bytes(making, type, false);
	making->nesting++;
	element = make(making, of, depth);
	making->nesting--;
	if (!element)
		return making->error ? NULL : make_bytes(making, type, false);
	/* Of nothing there is no array in a trace. */
	shape = element->size ? create(making, KYMO_SHAPE_ARRAY, type->n * element->size) : NULL;
	if (!shape) {
		kymo_shape_release(element);
		return NULL;
	}
	if (of->kind == KYMO_CTYPE_CHARACTER && of->size == 1 && !kymo_expr_is_character(of)) {
		element->naming = NULL; /* it is static */
		element->is_signed = false;
		element->is_hex = true;
	}
	shape->of = element;
	shape->n = (uint32_t)type->n;
	return shape;
}

/* ---- structures ------------------------------------------------------------------------------ */

/* A member with its shape, and its place in bits. */
struct part {
	const struct kymo_ctype_member *member;
	struct kymo_shape *shape;
	uint64_t begin, end;
	size_t number;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

/* Bits up to where a structure's last member ends: C++ may put another one into what is behind. */
static uint64_t content_bits(const struct kymo_shape *shape)
{
	const struct kymo_shape_member *last = shape->n ? &shape->members[shape->n - 1] : NULL;

	if (shape->kind == KYMO_SHAPE_BYTES && shape->is_cut)
		return 0;
	if (shape->kind != KYMO_SHAPE_STRUCT || shape->is_cut)
		return 8 * (uint64_t)shape->size;
	if (!last)
		return 0;
	return last->bit + (last->n_bits ? last->n_bits : content_bits(last->shape));
}

/* An empty class has a byte that another member may be in: it has no size, nor have those in it. */
static void empty(struct kymo_shape *shape)
{
	for (uint32_t i = 0; i < shape->n; i++)
		if (shape->members[i].shape->size)
			return;
	for (uint32_t i = 0; i < shape->n; i++)
		shape->members[i].bit = 0;
	shape->size = 0;
}

/* It has that size, which its content has room in. */
static void shrink(struct kymo_shape *shape, uint32_t size)
{
	const struct kymo_shape_member *last =
		shape->kind == KYMO_SHAPE_STRUCT && shape->n ? &shape->members[shape->n - 1] : NULL;

	shape->size = size;
	if (!size)
		shape->kind = KYMO_SHAPE_STRUCT;
	if (last && !last->n_bits && last->bit / 8 + last->shape->size > size)
		shrink(last->shape, size - last->bit / 8);
}

/* Whether there is room for the part after the one before it, which may have to become shorter. */
static bool has_room(struct part *before, const struct part *part)
{
	if (!before || before->end <= part->begin)
		return true;
	if (part->begin % 8 || before->begin + content_bits(before->shape) > part->begin)
		return false;
	before->end = part->begin;
	shrink(before->shape, (uint32_t)((before->end - before->begin) / 8));
	return true;
}

static bool add_part(struct making *making, struct kymo_shape *shape, const struct part *part)
{
	const struct kymo_ctype_member *member = part->member;
	const char *name = member->is_base ? member->type->name : member->name;
	const enum kymo_shape_role role = member->is_base ? KYMO_SHAPE_BASE
					  : name          ? KYMO_SHAPE_NAMED
							  : KYMO_SHAPE_ANONYMOUS;

	if (kymo_shape_add(shape, role, name ? name : "", name ? strlen(name) : 0, (uint32_t)part->begin,
			   member->bit_size, part->shape))
		return true;
	fail(making, &kymo_error_no_memory);
	return false;
}

/* Bits in which members of the structure may lie. */
static uint64_t limit_of(const struct making *making, const struct kymo_shape *shape, unsigned int depth)
{
	const bool is_limited = !depth && shape->kind == KYMO_SHAPE_STRUCT && shape->size > making->limits.size;

	return 8 * (uint64_t)(is_limited ? making->limits.size : shape->size);
}

/* The member in `ret`, unless it is left out. A flexible array has no bytes. */
static bool make_part(struct making *making, const struct kymo_shape *shape, const struct kymo_ctype_member *member,
		      unsigned int depth, struct part *ret)
{
	const uint64_t limit = limit_of(making, shape, depth);

	*ret = (struct part){ .member = member, .number = making->n_members };
	if (!member->type || member->offset >= UINT32_MAX / 16 || making->n_members == KYMO_SHAPE_MEMBERS_MAX)
		return false;
	making->n_members++;
	ret->begin = 8 * member->offset + member->bit_shift;
	ret->shape = ret->begin < limit || !member->type->size ? make(making, member->type, depth + 1) : NULL;
	if (!ret->shape)
		return false;
	if (ret->shape->kind == KYMO_SHAPE_STRUCT && !ret->shape->is_cut)
		empty(ret->shape);
	ret->end = ret->begin + (member->bit_size ? member->bit_size : 8 * (uint64_t)ret->shape->size);
	if (ret->end <= limit && (!member->bit_size || ret->shape->kind == KYMO_SHAPE_INTEGER))
		return true;
	kymo_shape_release(ret->shape);
	ret->shape = NULL;
	return false;
}

static bool is_flexible(const struct kymo_ctype_member *member)
{
	return member->type && member->type->kind == KYMO_CTYPE_ARRAY && !member->type->size;
}

/* Put those in that find their place, and free the others. */
static void place_parts(struct making *making, struct kymo_shape *shape, struct part *parts, size_t n)
{
	struct part *before = NULL;

	if (shape->kind == KYMO_SHAPE_STRUCT && n)
		qsort(parts, n, sizeof(*parts), compare_parts);
	for (size_t i = 0; i < n; i++) {
		const bool fits = shape->kind == KYMO_SHAPE_UNION ? !parts[i].begin : has_room(before, &parts[i]);

		shape->is_cut |= !fits && parts[i].begin < parts[i].end;
		if (!fits || making->error)
			kymo_shape_release(parts[i].shape);
		else if (add_part(making, shape, &parts[i]))
			before = &parts[i];
	}
}

static void fill_members(struct making *making, struct kymo_shape *shape, const struct kymo_ctype *type,
			 unsigned int depth)
{
	const struct kymo_ctype_member *members = NULL;
	kymo_cleanup_free struct part *parts = NULL;
	struct kymo_error *error = NULL;
	size_t n = 0, n_parts = 0;

	if (making->names->parts)
		error = making->names->parts(making->names->data, type, &members, &n);
	if (error) {
		fail(making, error);
		return;
	}
	shape->is_cut |= n > KYMO_SHAPE_MEMBERS_MAX;
	n = n < KYMO_SHAPE_MEMBERS_MAX ? n : KYMO_SHAPE_MEMBERS_MAX;
	parts = calloc(n + 1, sizeof(*parts));
	if (!parts) {
		fail(making, &kymo_error_no_memory);
		return;
	}
	for (size_t i = 0; i < n && !making->error; i++) {
		if (make_part(making, shape, &members[i], depth, &parts[n_parts]))
			n_parts++;
		else
			shape->is_cut |= !is_flexible(&members[i]);
	}
	place_parts(making, shape, parts, n_parts);
}

static struct kymo_shape *make_whole(struct making *making, const struct kymo_ctype *type, unsigned int depth)
{
	struct kymo_shape *shape;

	if (depth >= making->limits.depth || making->nesting == KYMO_SHAPE_DEPTH_MAX)
		return make_bytes(making, type, true);
	making->nesting++;
	shape = create(making, type->kind == KYMO_CTYPE_UNION ? KYMO_SHAPE_UNION : KYMO_SHAPE_STRUCT, type->size);
	if (shape)
		fill_members(making, shape, type, depth);
	making->nesting--;
	if (!shape || !making->error)
		return shape;
	kymo_shape_release(shape);
	return NULL;
}

static struct kymo_shape *make(struct making *making, const struct kymo_ctype *type, unsigned int depth)
{
	switch (type->kind) {
	case KYMO_CTYPE_FLOAT:
		return type->size == 4 || type->size == 8 ? create(making, KYMO_SHAPE_FLOAT, type->size)
							  : make_bytes(making, type, false);
	case KYMO_CTYPE_ARRAY:
		return make_array(making, type, depth);
	case KYMO_CTYPE_STRUCT:
	case KYMO_CTYPE_UNION:
		return make_whole(making, type, depth);
	case KYMO_CTYPE_VOID:
	case KYMO_CTYPE_FUNCTION:
	case KYMO_CTYPE_OTHER:
		return make_bytes(making, type, false);
	default:
		return make_integer(making, type);
	}
}

/* Of a structure that is too large the members that are left end sooner. */
static void shorten(struct kymo_shape *shape, uint32_t limit)
{
	const struct kymo_shape_member *last = shape->n ? &shape->members[shape->n - 1] : NULL;
	uint64_t end = 0;

	if (shape->kind != KYMO_SHAPE_STRUCT || shape->size <= limit)
		return;
	if (last)
		end = last->bit + (last->n_bits ? last->n_bits : 8 * (uint64_t)last->shape->size);
	shape->is_cut = true;
	shape->size = (uint32_t)((end + 7) / 8);
}

struct kymo_error *kymo_expr_shape(const struct kymo_expr_names *names, struct kymo_expr_type type,
				   struct kymo_shape_limits limits, struct kymo_shape **ret)
{
	struct making making = { .names = names, .limits = limits };
	struct kymo_shape *shape;

	*ret = NULL;
	if (kymo_expr_class_of(type) != KYMO_EXPR_STRUCT)
		return NULL;
	shape = make(&making, type.of, 0);
	if (!shape)
		return making.error;
	shorten(shape, limits.size);
	if (shape->kind != KYMO_SHAPE_BYTES && shape->n && shape->size)
		*ret = shape;
	else
		kymo_shape_release(shape);
	return NULL;
}

/* Takes over the array. */
static struct kymo_error *wrap(struct kymo_shape *array, struct kymo_shape **ret)
{
	struct kymo_shape *shape = kymo_shape_create(KYMO_SHAPE_STRUCT, array->size);

	if (!shape) {
		kymo_shape_release(array);
		return &kymo_error_no_memory;
	}
	if (!kymo_shape_add(shape, KYMO_SHAPE_ANONYMOUS, "", 0, 0, 0, array)) {
		kymo_shape_release(shape);
		return &kymo_error_no_memory;
	}
	*ret = shape;
	return NULL;
}

struct kymo_error *kymo_expr_row_shape(const struct kymo_expr_names *names, struct kymo_expr_type type,
				       struct kymo_shape_limits limits, struct kymo_shape **ret)
{
	struct making making = { .names = names, .limits = limits };
	struct kymo_expr_type row;
	struct kymo_shape *array;

	*ret = NULL;
	if (kymo_expr_class_of(type) != KYMO_EXPR_ARRAY)
		return NULL;
	row = expr_type_target(type);
	if (kymo_expr_class_of(row) != KYMO_EXPR_ARRAY || row.n || !row.of)
		return NULL;
	array = make(&making, row.of, 1);
	if (making.error)
		return making.error;
	if (array && array->kind == KYMO_SHAPE_ARRAY)
		return wrap(array, ret);
	kymo_shape_release(array);
	return NULL;
}
