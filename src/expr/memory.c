/* Types of what lies in memory: members, elements, what pointers point to (ISO C 6.5.2, 6.5.3.2). */
#include "expr/memory.h"

#include <string.h>

#include "base/caret.h"
#include "base/nearest.h"
#include "expr/convert.h"

#define LISTED_MAX 256

#define refuse(tree, at, ...) kymo_error_at((tree)->source.text, at, __VA_ARGS__)

static struct expr_node *child(struct expr_tree *tree, uint8_t i)
{
	return &tree->nodes[i];
}

static struct kymo_error *need_value_of(const struct expr_tree *tree, const struct expr_node *node,
					enum kymo_expr_class class)
{
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	kymo_expr_type_name(node->type, name);
	switch (class) {
	case KYMO_EXPR_INTEGER:
	case KYMO_EXPR_POINTER:
		return NULL;
	case KYMO_EXPR_FLOAT:
		return expr_type_is_real(node->type)
			       ? refuse(tree, node->at,
					"this is a '%s', and a whole number is expected; convert it: (long)x", name)
			       : refuse(tree, node->at, "this is a '%s', which is not supported; float and double are",
					name);
	case KYMO_EXPR_STRUCT:
		return refuse(tree, node->at, "this is a whole '%s'; write one of its members", name);
	case KYMO_EXPR_STRING:
		return refuse(tree, node->at, "a text is recorded, or compared with another: str(arg0) == \"text\"");
	case KYMO_EXPR_VOID:
		return refuse(tree, node->at,
			      "this has no value: its type is void; convert the pointer, as in *(long *)p");
	case KYMO_EXPR_ARRAY:
		return refuse(tree, node->at, "a piece of an array can be recorded, but not computed with");
	default:
		return refuse(tree, node->at, "values of type '%s' are not supported", name);
	}
}

/* What registers hold of an array has no address to become. */
static struct kymo_error *need_lvalue(const struct expr_tree *tree, const struct expr_node *node)
{
	if (kymo_expr_class_of(node->type) != KYMO_EXPR_ARRAY || node->is_lvalue)
		return NULL;
	return refuse(tree, node->at, "this array is in registers, and its elements are not known");
}

struct kymo_error *expr_need_value(const struct expr_tree *tree, const struct expr_node *node)
{
	struct kymo_error *error = need_lvalue(tree, node);

	if (error)
		return error;
	return need_value_of(tree, node, kymo_expr_class_of(expr_value_type(node)));
}

struct kymo_error *expr_need_number(const struct expr_tree *tree, const struct expr_node *node)
{
	return expr_type_is_real(node->type) ? NULL : expr_need_value(tree, node);
}

struct kymo_error *expr_need_record(const struct expr_tree *tree, const struct expr_node *node)
{
	const enum kymo_expr_class class = kymo_expr_class_of(node->type);
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	kymo_expr_type_name(node->type, name);
	if (node->kind == EXPR_TEXT)
		return refuse(tree, node->at, "a text alone says nothing; compare it, as in str(arg0) == \"text\"");
	if (class == KYMO_EXPR_STRING)
		return NULL;
	if (class == KYMO_EXPR_FLOAT &&
	    (kymo_expr_type_bytes(node->type) == 4 || kymo_expr_type_bytes(node->type) == 8))
		return NULL;
	if (class == KYMO_EXPR_FLOAT)
		return refuse(tree, node->at, "this is a '%s', which is not supported; float and double are", name);
	if (class != KYMO_EXPR_STRUCT && class != KYMO_EXPR_ARRAY)
		return need_value_of(tree, node, class);
	if (!node->is_lvalue)
		return refuse(tree, node->at,
			      "this '%s' is in registers, and not recorded as a whole; write its members", name);
	if (!kymo_expr_type_bytes(node->type))
		return refuse(tree, node->at, "the size of '%s' is not known", name);
	return NULL;
}

uint64_t expr_element_size(struct kymo_expr_type pointer)
{
	const struct kymo_expr_type target = expr_type_target(pointer);
	const enum kymo_expr_class class = kymo_expr_class_of(target);

	return class == KYMO_EXPR_VOID || class == KYMO_EXPR_FUNCTION ? 1 : kymo_expr_type_bytes(target);
}

void expr_follow_reference(struct expr_node *node)
{
	if (!expr_type_is_reference(node->type))
		return;
	node->type = expr_type_target(node->type);
	node->is_reference = node->is_lvalue;
	node->is_lvalue = true;
}

/* ---- members --------------------------------------------------------------------------------- */

static struct kymo_error *refuse_member(const struct expr_tree *tree, const struct expr_node *node,
					struct kymo_expr_type type, const struct kymo_ctype_member *members, size_t n)
{
	const char *names[LISTED_MAX];
	char name[KYMO_EXPR_TYPE_NAME_MAX], list[KYMO_NEAREST_MAX];

	n = n < LISTED_MAX ? n : LISTED_MAX;
	for (size_t i = 0; i < n; i++)
		names[i] = members[i].name;
	kymo_expr_type_name(type, name);
	kymo_nearest_list(node->name, node->size, names, n, list);
	if (!*list)
		return refuse(tree, node->name,
			      "'%s' has no member '%.*s': the debug information describes none of its members", name,
			      node->size, node->name);
	return refuse(tree, node->name, "'%s' has no member '%.*s'; it has: %s", name, node->size, node->name, list);
}

/* Whether the language writes "." where C writes "->": pointers of C and C++ are spelled with a "*" at the end, those
 * of Rust and Go are "&net::Conn", "*main.conn" or "alloc::boxed::Box<net::Conn>". */
static bool is_followed_by_dots(struct kymo_expr_type type)
{
	const char *name = !type.pointers && !type.n && type.of ? type.of->name : NULL;

	return name && *name && type.of->kind == KYMO_CTYPE_POINTER && name[strlen(name) - 1] != '*';
}

/* The structure or union that the member is of. */
static struct kymo_error *find_whole(const struct expr_tree *tree, struct expr_node *node, const struct expr_node *of,
				     struct kymo_expr_type *ret)
{
	const bool is_pointer = expr_is_pointer(of);
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	node->is_arrow |= is_pointer && is_followed_by_dots(of->type);

	*ret = is_pointer ? expr_type_target(expr_value_type(of)) : of->type;
	kymo_expr_type_name(of->type, name);
	if (kymo_expr_class_of(*ret) != KYMO_EXPR_STRUCT)
		return refuse(tree, node->at, "'%s' is for structures and unions, and this is a '%s'%s", node->sign,
			      name,
			      kymo_expr_class_of(of->type) == KYMO_EXPR_INTEGER
				      ? "; convert it, as in ((struct conn *)arg0)->fd"
				      : "");
	if (is_pointer != node->is_arrow)
		return refuse(tree, node->at, "this is a '%s': write '%s' in place of '%s'", name,
			      is_pointer ? "->" : ".", node->sign);
	return NULL;
}

/* In a structure that is no lvalue, but a value of at most 8 bytes, a member is some of its bits. */
static struct kymo_error *bits_of_value(const struct expr_tree *tree, struct expr_node *node,
					const struct kymo_ctype_member *member, uint64_t whole)
{
	const uint64_t bytes = kymo_expr_type_bytes(node->type);

	if (whole > 8 || !bytes || member->offset > 8 || member->offset + bytes > whole)
		return refuse(tree, node->at, "this structure is in several registers, and its members are not known");
	if (!node->bit_size) {
		node->bit_size = (uint8_t)(8 * bytes);
		node->bit_shift = 0;
	}
	node->bit_shift = (uint8_t)(node->bit_shift + 8 * member->offset);
	return NULL;
}

static struct kymo_error *place_member(const struct expr_tree *tree, struct expr_node *node, const struct expr_node *of,
				       const struct kymo_ctype_member *member)
{
	node->type = kymo_expr_type_of(member->type);
	node->offset = member->offset;
	node->is_lvalue = node->is_arrow || of->is_lvalue;
	node->bit_size = member->bit_size;
	node->bit_shift = member->bit_shift;
	if (member->bit_size &&
	    (kymo_expr_class_of(node->type) != KYMO_EXPR_INTEGER || member->bit_size + member->bit_shift > 64))
		return refuse(tree, node->name, "the debug information describes this bit-field wrongly");
	if (!node->is_lvalue)
		return bits_of_value(tree, node, member, kymo_expr_type_bytes(of->type));
	expr_follow_reference(node);
	return NULL;
}

static struct kymo_error *check_member(struct expr_tree *tree, struct expr_node *node)
{
	const struct kymo_ctype_member *members = NULL;
	const struct expr_node *of = child(tree, node->a);
	struct kymo_expr_type type;
	struct kymo_error *error;
	size_t n = 0;

	error = find_whole(tree, node, of, &type);
	if (!error && tree->names->members)
		error = tree->names->members(tree->names->data, type.of, &members, &n);
	if (error)
		return error;
	for (size_t i = 0; i < n; i++)
		if (members[i].name && strlen(members[i].name) == node->size &&
		    !memcmp(members[i].name, node->name, node->size))
			return place_member(tree, node, of, &members[i]);
	return refuse_member(tree, node, type, members, n);
}

/* ---- pointers and arrays --------------------------------------------------------------------- */

static struct kymo_error *need_pointer(const struct expr_tree *tree, const struct expr_node *node,
				       const struct expr_node *of)
{
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	if (expr_is_pointer(of))
		return need_lvalue(tree, of);
	return refuse(tree, node->at, "'%s' is for pointers, and this is a '%s'; convert it, as in (int *)arg0",
		      node->sign, kymo_expr_type_name(of->type, name));
}

static struct kymo_error *check_deref(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);
	struct kymo_error *error = need_pointer(tree, node, a);

	if (error)
		return error;
	node->type = expr_type_target(expr_value_type(a));
	node->is_lvalue = true;
	return NULL;
}

static struct kymo_error *check_address(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);

	if (!a->is_lvalue || a->bit_size || a->type.n)
		return refuse(tree, node->at, "this has no address: %s",
			      a->bit_size && a->is_lvalue ? "it is a bit-field"
			      : a->type.n                 ? "it is a piece of an array; write that of one element"
							  : "it is a value, or in a register");
	node->type = expr_type_pointer(a->type);
	return NULL;
}

static struct kymo_error *check_elements(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);
	struct kymo_error *error = need_pointer(tree, node, a);

	if (!error && a->type.n)
		error = refuse(tree, node->at, "this is a piece of an array already");
	if (error)
		return error;
	node->type = expr_type_target(expr_value_type(a));
	node->is_lvalue = true;
	if (!kymo_expr_type_bytes(node->type))
		return refuse(tree, node->at,
			      "the size of the elements is not known; convert the pointer, as in ((char *)p)[0]");
	return NULL;
}

static struct kymo_error *check_index(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *b = child(tree, node->b);
	struct kymo_error *error = check_elements(tree, node);

	if (!error)
		error = expr_need_value(tree, b);
	if (!error && expr_is_pointer(b))
		error = refuse(tree, b->at, "an index is a number, and this is a pointer");
	return error;
}

/* A number that is computed: of bytes, or of an element. */
static struct kymo_error *need_count(const struct expr_tree *tree, const struct expr_node *b)
{
	struct kymo_error *error = expr_need_value(tree, b);

	if (!error && expr_is_pointer(b))
		error = refuse(tree, b->at, "a number is expected, and this is a pointer");
	return error;
}

/* Elements that there is room for where the last one is computed: no more than the array has. 0: not even for one. */
static uint64_t elements_of_piece(struct expr_tree *tree, const struct expr_node *node)
{
	const struct kymo_expr_type whole = child(tree, node->a)->type;
	const uint64_t size = kymo_expr_type_bytes(node->type), n = KYMO_FORM_WANTED_MAX / size;
	const uint64_t bytes = kymo_expr_class_of(whole) == KYMO_EXPR_ARRAY ? kymo_expr_type_bytes(whole) : 0;
	const uint64_t left = bytes > node->offset ? (bytes - node->offset) / size : 0;

	return left && left < n ? left : n;
}

static struct kymo_error *check_last(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *b = child(tree, node->b);
	struct kymo_error *error = need_count(tree, b);

	if (error)
		return error;
	if (b->kind == EXPR_CONSTANT) {
		node->kind = EXPR_PIECE;
		node->last = b->value;
		return NULL;
	}
	if (kymo_expr_type_bytes(node->type) > KYMO_FORM_WANTED_MAX)
		return refuse(tree, node->at,
			      "an element has more than %d bytes, which is all that there is room for where the last "
			      "one is computed; write numbers, as in [0..1]",
			      KYMO_FORM_WANTED_MAX);
	node->offset = (uint64_t)node->value * kymo_expr_type_bytes(node->type);
	node->type = expr_type_piece(node->type, (uint32_t)elements_of_piece(tree, node));
	return NULL;
}

static struct kymo_error *check_piece(struct expr_tree *tree, struct expr_node *node)
{
	static const char what[] = "expected the first element and the last, as in [0..7]";
	struct kymo_error *error = check_elements(tree, node);

	if (error)
		return error;
	if (node->value < 0)
		return refuse(tree, node->at, "%s", what);
	if (expr_is_of_length(node))
		error = check_last(tree, node);
	if (error || expr_is_of_length(node))
		return error;
	if (node->last < node->value || node->last - node->value >= UINT32_MAX)
		return refuse(tree, node->at, "%s", what);
	node->offset = (uint64_t)node->value * kymo_expr_type_bytes(node->type);
	if (node->ends_at_null && kymo_expr_class_of(node->type) != KYMO_EXPR_POINTER)
		return refuse(tree, node->at,
			      "a NULL ends an array of pointers, and no other: write both numbers, as in [0..7]");
	node->type = expr_type_piece(node->type, (uint32_t)(node->last - node->value + 1));
	node->type.ends_at_null = node->ends_at_null;
	return NULL;
}

/* The length of str(a, b), buf(a, b): where it is known it is as if there were no `b`. */
static struct kymo_error *check_length(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *b = child(tree, node->b);
	struct kymo_error *error = need_count(tree, b);

	if (error || b->kind != EXPR_CONSTANT)
		return error;
	if (b->value < 1 || b->value > INT32_MAX)
		return refuse(tree, node->at, "expected a number of bytes, such as %s(arg0, 64)", node->sign);
	node->value = b->value;
	node->kind = node->kind == EXPR_STRING_OF ? EXPR_STRING : EXPR_BUFFER;
	return NULL;
}

static struct kymo_error *check_text(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);
	const uint64_t bytes = kymo_expr_class_of(a->type) == KYMO_EXPR_ARRAY ? kymo_expr_type_bytes(a->type) : 0;
	struct kymo_error *error = expr_need_value(tree, a);

	if (!error && expr_is_of_length(node))
		error = check_length(tree, node);
	if (error)
		return error;
	if (expr_is_of_length(node))
		node->value = bytes && bytes < KYMO_FORM_WANTED_MAX ? (int64_t)bytes : KYMO_FORM_WANTED_MAX;
	if (!node->value && bytes <= INT32_MAX) /* the text ends with its array, if not before */
		node->value = (int64_t)bytes;
	node->type = node->kind == EXPR_STRING || node->kind == EXPR_STRING_OF
			     ? (struct kymo_expr_type){ .size = 8, .is_string = true, .n = (uint32_t)node->value }
			     : expr_type_piece(kymo_expr_type_of(&expr_byte), (uint32_t)node->value);
	node->is_lvalue = true;
	return NULL;
}

static struct kymo_error *check_sizeof(struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);
	const bool is_unknown = (a->bit_size && a->is_lvalue) || a->type.ends_at_null || expr_is_of_length(a);
	const uint64_t bytes = is_unknown ? 0 : kymo_expr_type_bytes(a->type);

	if (!bytes)
		return refuse(tree, node->at, "the size of this is not known");
	node->kind = EXPR_CONSTANT;
	node->value = (int64_t)bytes;
	node->type = (struct kymo_expr_type){ .size = 8 };
	return NULL;
}

struct kymo_error *expr_check_memory(struct expr_tree *tree, struct expr_node *node)
{
	switch (node->kind) {
	case EXPR_DEREF:
		return check_deref(tree, node);
	case EXPR_ADDRESS:
		return check_address(tree, node);
	case EXPR_MEMBER:
		return check_member(tree, node);
	case EXPR_INDEX:
		return check_index(tree, node);
	case EXPR_PIECE:
	case EXPR_PIECE_OF:
		return check_piece(tree, node);
	case EXPR_SIZEOF:
		return check_sizeof(tree, node);
	default:
		return check_text(tree, node);
	}
}
