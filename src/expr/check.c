/* Types of a tree, by the rules of ISO C 6.3.1 and 6.5; and what is constant is computed here, by the form it would be.
 */
#include "base/caret.h"
#include "expr/check.h"
#include "expr/lower.h"

static const struct kymo_expr_type truth = { 4, true };

/* Integer promotion: what is narrower than int is int. */
static struct kymo_expr_type promote(struct kymo_expr_type type)
{
	return type.size < 4 ? truth : type;
}

/* The usual arithmetic conversions. */
static struct kymo_expr_type common(struct kymo_expr_type a, struct kymo_expr_type b)
{
	a = promote(a);
	b = promote(b);
	if (a.size != b.size)
		return a.size > b.size ? a : b;
	return (struct kymo_expr_type){ a.size, a.is_signed && b.is_signed };
}

static struct kymo_expr_type type_of_binary(const struct expr_node *node, const struct expr_node *a,
					    const struct expr_node *b)
{
	switch (node->code) {
	case KYMO_FORM_EQUAL:
	case KYMO_FORM_DIFFERENT:
	case KYMO_FORM_LESS:
	case KYMO_FORM_LESS_OR_EQUAL:
		return truth;
	case KYMO_FORM_SHIFT_LEFT:
	case KYMO_FORM_SHIFT_RIGHT:
		return promote(a->type);
	default:
		return common(a->type, b->type);
	}
}

static struct kymo_expr_type type_of(const struct expr_tree *tree, const struct expr_node *node)
{
	const struct expr_node *a = &tree->nodes[node->a], *b = &tree->nodes[node->b];

	switch (node->kind) {
	case EXPR_UNARY:
		return node->code == KYMO_FORM_NOT ? truth : promote(a->type);
	case EXPR_BINARY:
		return type_of_binary(node, a, b);
	case EXPR_AND:
	case EXPR_OR:
		return truth;
	case EXPR_CHOICE:
		return common(b->type, tree->nodes[node->c].type);
	default: /* known before */
		return node->type;
	}
}

static bool has_constants_only(const struct expr_tree *tree, const struct expr_node *node)
{
	const bool has_a = node->kind >= EXPR_CAST, has_b = node->kind >= EXPR_BINARY,
		   has_c = node->kind == EXPR_CHOICE;

	return has_a && tree->nodes[node->a].kind == EXPR_CONSTANT &&
	       (!has_b || tree->nodes[node->b].kind == EXPR_CONSTANT) &&
	       (!has_c || tree->nodes[node->c].kind == EXPR_CONSTANT);
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

struct kymo_error *expr_check(struct expr_tree *tree)
{
	struct kymo_error *error = NULL;

	for (unsigned int i = 0; i < tree->n && !error; i++) {
		struct expr_node *node = &tree->nodes[i];
		const struct expr_node *b = &tree->nodes[node->b];

		node->type = type_of(tree, node);
		if (node->kind == EXPR_BINARY &&
		    (node->code == KYMO_FORM_DIVIDE || node->code == KYMO_FORM_REMAINDER) && b->kind == EXPR_CONSTANT &&
		    !b->value)
			return kymo_error_at(tree->source.text, node->at, "this is a division by zero");
		if (has_constants_only(tree, node))
			error = fold(tree, i);
	}
	return error;
}
