/* Types of a tree, by the rules of ISO C 6.3.1 and 6.5; and what is constant is computed here, by the form it would be.
 */
#include "expr/check.h"

#include "base/caret.h"
#include "expr/convert.h"
#include "expr/enumerator.h"
#include "expr/lower.h"
#include "expr/memory.h"

static const struct kymo_expr_type truth = { .size = 4, .is_signed = true };

static const struct expr_node *child(const struct expr_tree *tree, uint8_t i)
{
	return &tree->nodes[i];
}

static bool is_integer(const struct expr_node *node)
{
	return kymo_expr_class_of(node->type) == KYMO_EXPR_INTEGER;
}

/* ---- operators ------------------------------------------------------------------------------- */

static struct kymo_error *refuse_pointer(const struct expr_tree *tree, const struct expr_node *node)
{
	return kymo_error_at(tree->source.text, node->at,
			     "'%s' is for numbers, and this has a pointer; convert it: (long)p", node->sign);
}

/* The sum and difference of a pointer and a number, and the difference of two pointers. */
static struct kymo_error *check_pointer_sum(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a), *b = child(tree, node->b);
	const bool is_difference = expr_is_pointer(a) && expr_is_pointer(b);

	if (node->code != KYMO_FORM_ADD && node->code != KYMO_FORM_SUBTRACT)
		return refuse_pointer(tree, node);
	if (node->code == KYMO_FORM_ADD ? is_difference : !expr_is_pointer(a))
		return kymo_error_at(tree->source.text, node->at, "a pointer is %s",
				     is_difference ? "added to a number, not to a pointer" : "not taken from a number");
	node->type = expr_value_type(expr_is_pointer(a) ? a : b);
	if (!expr_element_size(node->type))
		return kymo_error_at(tree->source.text, node->at,
				     "the size of what the pointer points to is not known; convert it: (char *)p");
	if (is_difference)
		node->type = (struct kymo_expr_type){ .size = 8, .is_signed = true };
	return NULL;
}

static struct kymo_error *check_match(const struct expr_tree *tree, struct expr_node *node)
{
	const uint8_t a = node->a, b = node->b;
	const bool is_swapped = child(tree, a)->kind == EXPR_TEXT;
	const struct expr_node *string = child(tree, is_swapped ? b : a);

	if ((node->code != KYMO_FORM_EQUAL && node->code != KYMO_FORM_DIFFERENT) ||
	    (string->kind != EXPR_STRING && string->kind != EXPR_STRING_OF))
		return kymo_error_at(tree->source.text, node->at,
				     "a text is compared with one in memory by == or !=, as in str(arg0) == \"text\"");
	node->kind = EXPR_MATCH;
	node->a = is_swapped ? b : a;
	node->b = is_swapped ? a : b;
	node->type = truth;
	return NULL;
}

static bool is_real(const struct expr_node *node)
{
	return expr_type_is_real(node->type);
}

static struct kymo_error *refuse_real(const struct expr_tree *tree, const struct expr_node *node)
{
	return kymo_error_at(tree->source.text, node->at,
			     "'%s' is for whole numbers, and this has a floating-point number; convert it: (long)x",
			     node->sign);
}

/* One of the two operands is floating-point. */
static struct kymo_error *check_reals(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a), *b = child(tree, node->b);

	if (expr_is_pointer(a) || expr_is_pointer(b))
		return refuse_pointer(tree, node);
	if (expr_is_comparison(node->code))
		node->type = truth;
	else if (node->code >= KYMO_FORM_ADD && node->code <= KYMO_FORM_DIVIDE)
		node->type = expr_common(a, b);
	else
		return refuse_real(tree, node);
	return NULL;
}

static struct kymo_error *check_binary(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a), *b = child(tree, node->b);
	struct kymo_error *error;

	if (a->kind == EXPR_TEXT || b->kind == EXPR_TEXT)
		return check_match(tree, node);
	error = expr_need_number(tree, a);
	if (!error)
		error = expr_need_number(tree, b);
	if (error)
		return error;
	if (is_real(a) || is_real(b))
		return check_reals(tree, node);
	if (expr_is_comparison(node->code))
		node->type = truth;
	else if (!is_integer(a) || !is_integer(b))
		return check_pointer_sum(tree, node);
	else if (node->code == KYMO_FORM_SHIFT_LEFT || node->code == KYMO_FORM_SHIFT_RIGHT)
		node->type = expr_promoted(a);
	else
		node->type = expr_common(a, b);
	if ((node->code == KYMO_FORM_DIVIDE || node->code == KYMO_FORM_REMAINDER) && b->kind == EXPR_CONSTANT &&
	    !b->value)
		return kymo_error_at(tree->source.text, node->at, "this is a division by zero");
	return NULL;
}

static struct kymo_error *check_unary(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a);
	struct kymo_error *error = expr_need_number(tree, a);

	if (error)
		return error;
	if (is_real(a) && node->code == KYMO_FORM_COMPLEMENT)
		return refuse_real(tree, node);
	if (node->code != KYMO_FORM_NOT && !is_integer(a) && !is_real(a))
		return refuse_pointer(tree, node);
	node->type = node->code == KYMO_FORM_NOT ? truth : expr_promoted(a);
	return NULL;
}

static struct kymo_error *check_logical(const struct expr_tree *tree, struct expr_node *node)
{
	struct kymo_error *error = expr_need_number(tree, child(tree, node->a));

	node->type = truth;
	return error ? error : expr_need_number(tree, child(tree, node->b));
}

static struct kymo_error *check_choice(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *b = child(tree, node->b), *c = child(tree, node->c);
	struct kymo_error *error = expr_need_number(tree, child(tree, node->a));

	if (!error)
		error = expr_need_number(tree, b);
	if (!error)
		error = expr_need_number(tree, c);
	if (!error && (is_real(b) || is_real(c)) && (expr_is_pointer(b) || expr_is_pointer(c)))
		return refuse_pointer(tree, node);
	if (!error && (is_real(b) || is_real(c) || (is_integer(b) && is_integer(c))))
		node->type = expr_common(b, c);
	else if (!error)
		node->type = expr_value_type(is_integer(b) ? c : b);
	return error;
}

static struct kymo_error *check_cast(const struct expr_tree *tree, struct expr_node *node)
{
	const enum kymo_expr_class to = kymo_expr_class_of(node->type);
	char name[KYMO_EXPR_TYPE_NAME_MAX];

	if (to == KYMO_EXPR_INTEGER)
		return expr_need_number(tree, child(tree, node->a));
	if (to == KYMO_EXPR_POINTER)
		return expr_need_value(tree, child(tree, node->a));
	if (expr_type_is_real(node->type) && expr_is_pointer(child(tree, node->a)))
		return kymo_error_at(tree->source.text, node->at,
				     "a pointer does not become a floating-point number; convert it first: (long)p");
	if (expr_type_is_real(node->type))
		return expr_need_number(tree, child(tree, node->a));
	return kymo_error_at(tree->source.text, node->at,
			     "nothing can be converted to '%s'; write a pointer to it, as in (%s *)arg0",
			     kymo_expr_type_name(node->type, name), name);
}

static struct kymo_error *check_assignment(const struct expr_tree *tree, struct expr_node *node)
{
	const struct expr_node *a = child(tree, node->a), *b = child(tree, node->b);
	struct kymo_error *error = expr_need_number(tree, a);

	if (!error)
		error = expr_need_number(tree, b);
	if (error)
		return error;
	node->type = a->type;
	if (a->bit_size)
		return kymo_error_at(tree->source.text, a->at, "kymo writes whole bytes, and this is a bit-field");
	if (kymo_expr_class_of(a->type) == KYMO_EXPR_ARRAY)
		return kymo_error_at(tree->source.text, a->at,
				     "an array is not written as a whole; write one of its elements");
	if (!a->is_lvalue)
		return kymo_error_at(tree->source.text, a->at,
				     "this is not in memory here, so it is not written; 'kymo list --vars' says where "
				     "it is, and 'set %%REGISTER = ...' writes a register");
	if (is_real(a) != is_real(b) && (expr_is_pointer(a) || expr_is_pointer(b)))
		return refuse_pointer(tree, node);
	return NULL;
}

/* ---- constants ------------------------------------------------------------------------------- */

static bool is_computed(enum expr_kind kind)
{
	return kind == EXPR_CAST || kind == EXPR_UNARY || kind == EXPR_BINARY || kind == EXPR_AND || kind == EXPR_OR ||
	       kind == EXPR_CHOICE;
}

static bool has_constants_only(const struct expr_tree *tree, const struct expr_node *node)
{
	const unsigned int n = expr_n_children(node->kind);

	return is_computed(node->kind) && child(tree, node->a)->kind == EXPR_CONSTANT &&
	       (n < 2 || child(tree, node->b)->kind == EXPR_CONSTANT) &&
	       (n < 3 || child(tree, node->c)->kind == EXPR_CONSTANT);
}

/* The tree that ends with node `root`, which has constants below it only. */
static struct kymo_error *fold(struct expr_tree *tree, unsigned int root)
{
	struct expr_node *node = &tree->nodes[root];
	const unsigned int n = tree->n;
	const struct kymo_form_input nothing = { .n_stack = 0 };
	struct kymo_error *error;
	struct kymo_form form;
	uint64_t value;

	tree->n = root + 1;
	error = expr_lower(tree, &form);
	tree->n = n;
	if (error)
		return error;
	if (!kymo_form_run(&form, &nothing, &value))
		return kymo_error_at(tree->source.text, node->at, "this is a division by zero");
	node->kind = EXPR_CONSTANT;
	node->value = (int64_t)value;
	return NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct kymo_error *check_node(struct expr_tree *tree, struct expr_node *node)
{
	switch (node->kind) {
	case EXPR_NAME:
		expr_follow_reference(node);
		return NULL;
	case EXPR_CAST:
		return check_cast(tree, node);
	case EXPR_UNARY:
		return check_unary(tree, node);
	case EXPR_BINARY:
		return check_binary(tree, node);
	case EXPR_AND:
	case EXPR_OR:
		return check_logical(tree, node);
	case EXPR_CHOICE:
		return check_choice(tree, node);
	case EXPR_ASSIGN:
		return check_assignment(tree, node);
	case EXPR_CONSTANT:
	case EXPR_UNKNOWN:
	case EXPR_TEXT:
	case EXPR_MATCH:
		return NULL;
	default:
		return expr_check_memory(tree, node);
	}
}

struct kymo_error *expr_check(struct expr_tree *tree)
{
	struct kymo_error *error = NULL;

	for (unsigned int i = 0; i < tree->n && !error; i++) {
		struct expr_node *node = &tree->nodes[i];

		error = expr_resolve_enumerators(tree, node, i + 1 == tree->n);
		if (!error)
			error = check_node(tree, node);
		if (!error && has_constants_only(tree, node))
			error = fold(tree, i);
	}
	return error ? error : expr_need_record(tree, &tree->nodes[tree->n - 1]);
}
