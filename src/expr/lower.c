/*
 * Tree to form. Each value lies on the form's stack as 64 bits of its type: with its sign, or zeros, before its low
 * bytes. So a conversion is an operation only where it loses bytes or changes what the bytes before mean, and 64-bit
 * operations serve all types, with an extension behind those that may carry beyond 32 bits.
 */
#include "base/caret.h"
#include "expr/lower.h"

struct lowering {
	const struct expr_tree *tree;
	struct kymo_form *form;
	unsigned int depth, depth_max, n_faults;
	bool is_full;
};

static struct kymo_form_op *emit(struct lowering *to, struct kymo_form_op op)
{
	static struct kymo_form_op lost;

	if (to->form->n == KYMO_FORM_OPS_MAX) {
		to->is_full = true;
		return &lost;
	}
	to->form->ops[to->form->n] = op;
	return &to->form->ops[to->form->n++];
}

static void emit_code(struct lowering *to, enum kymo_form_code code, struct kymo_expr_type type)
{
	emit(to, (struct kymo_form_op){ .code = (uint8_t)code, .size = type.size, .is_signed = type.is_signed });
}

static void note_pushed(struct lowering *to)
{
	if (++to->depth > to->depth_max)
		to->depth_max = to->depth;
}

static void emit_value(struct lowering *to, int64_t value)
{
	emit(to, (struct kymo_form_op){ .code = KYMO_FORM_VALUE, .value = value });
	note_pushed(to);
}

static bool converts(struct kymo_expr_type from, struct kymo_expr_type to)
{
	if (to.size == 8)
		return false;
	if (from.size < to.size)
		return from.is_signed && !to.is_signed;
	return from.size != to.size || from.is_signed != to.is_signed;
}

static void convert(struct lowering *to, struct kymo_expr_type from, struct kymo_expr_type type)
{
	if (converts(from, type))
		emit_code(to, KYMO_FORM_EXTEND, type);
}

static void lower(struct lowering *to, const struct expr_node *node);

static const struct expr_node *child(const struct lowering *to, uint8_t i)
{
	return &to->tree->nodes[i];
}

static void lower_as(struct lowering *to, uint8_t i, struct kymo_expr_type type)
{
	const struct expr_node *node = child(to, i);

	lower(to, node);
	convert(to, node->type, type);
}

/* What the name pushes has more bytes than the name's type, or none known before them. */
static void lower_name(struct lowering *to, const struct expr_node *node)
{
	emit(to, node->op);
	note_pushed(to);
	to->n_faults += node->op.code == KYMO_FORM_STACK || node->op.code == KYMO_FORM_RETVAL;
	if (node->type.size < 8)
		emit_code(to, KYMO_FORM_EXTEND, node->type);
}

static void lower_unary(struct lowering *to, const struct expr_node *node)
{
	if (node->code == KYMO_FORM_NOT) {
		lower(to, child(to, node->a));
		emit_code(to, KYMO_FORM_NOT, node->type);
		return;
	}
	lower_as(to, node->a, node->type);
	emit_code(to, node->code, node->type);
	if (node->type.size < 8)
		emit_code(to, KYMO_FORM_EXTEND, node->type);
}

static bool is_comparison(enum kymo_form_code code)
{
	return code >= KYMO_FORM_EQUAL && code <= KYMO_FORM_LESS_OR_EQUAL;
}

static bool is_shift(enum kymo_form_code code)
{
	return code == KYMO_FORM_SHIFT_LEFT || code == KYMO_FORM_SHIFT_RIGHT;
}

/* Whether 32 bits can carry into the bytes before them: unsigned ones below zero, too. */
static bool carries(const struct expr_node *node)
{
	switch (node->code) {
	case KYMO_FORM_ADD:
	case KYMO_FORM_SUBTRACT:
	case KYMO_FORM_MULTIPLY:
	case KYMO_FORM_SHIFT_LEFT:
		return true;
	case KYMO_FORM_DIVIDE:
		return node->type.is_signed; /* the least number by -1 */
	default:
		return false;
	}
}

/* The type in which both operands are compared, as check.c would have it for their sum. */
static struct kymo_expr_type compared(const struct expr_node *a, const struct expr_node *b)
{
	const struct kymo_expr_type integer = { 4, true };
	const struct kymo_expr_type x = a->type.size < 4 ? integer : a->type, y = b->type.size < 4 ? integer : b->type;

	if (x.size != y.size)
		return x.size > y.size ? x : y;
	return (struct kymo_expr_type){ x.size, x.is_signed && y.is_signed };
}

static void lower_binary(struct lowering *to, const struct expr_node *node)
{
	struct kymo_expr_type type = node->type;

	if (is_comparison(node->code))
		type = compared(child(to, node->a), child(to, node->b));
	lower_as(to, node->swaps ? node->b : node->a, type);
	if (is_shift(node->code))
		lower(to, child(to, node->b));
	else
		lower_as(to, node->swaps ? node->a : node->b, type);
	emit_code(to, node->code, type);
	to->depth--;
	to->n_faults += node->code == KYMO_FORM_DIVIDE || node->code == KYMO_FORM_REMAINDER;
	if (type.size < 8 && carries(node))
		emit_code(to, KYMO_FORM_EXTEND, type);
}

/* The first condition leads by JUMP_IF_ZERO to the third; `then` and `otherwise` leave one value each. */
struct choice {
	struct kymo_form_op *to_other, *to_end;
};

static void begin_choice(struct lowering *to, struct choice *choice)
{
	choice->to_other = emit(to, (struct kymo_form_op){ .code = KYMO_FORM_JUMP_IF_ZERO });
	to->depth--;
}

static void otherwise(struct lowering *to, struct choice *choice)
{
	choice->to_end = emit(to, (struct kymo_form_op){ .code = KYMO_FORM_JUMP });
	choice->to_other->value = to->form->n;
	to->depth--;
}

static void end_choice(struct lowering *to, struct choice *choice)
{
	choice->to_end->value = to->form->n;
}

static void lower_truth(struct lowering *to, uint8_t i)
{
	lower(to, child(to, i));
	emit_code(to, KYMO_FORM_TRUTH, child(to, i)->type);
}

static void lower_logical(struct lowering *to, const struct expr_node *node)
{
	struct choice choice;

	lower(to, child(to, node->a));
	begin_choice(to, &choice);
	if (node->kind == EXPR_AND)
		lower_truth(to, node->b);
	else
		emit_value(to, 1);
	otherwise(to, &choice);
	if (node->kind == EXPR_AND)
		emit_value(to, 0);
	else
		lower_truth(to, node->b);
	end_choice(to, &choice);
}

static void lower_choice(struct lowering *to, const struct expr_node *node)
{
	struct choice choice;

	lower(to, child(to, node->a));
	begin_choice(to, &choice);
	lower_as(to, node->b, node->type);
	otherwise(to, &choice);
	lower_as(to, node->c, node->type);
	end_choice(to, &choice);
}

static void lower(struct lowering *to, const struct expr_node *node)
{
	switch (node->kind) {
	case EXPR_CONSTANT:
		emit_value(to, node->value);
		break;
	case EXPR_NAME:
		lower_name(to, node);
		break;
	case EXPR_CAST:
		lower_as(to, node->a, node->type);
		break;
	case EXPR_UNARY:
		lower_unary(to, node);
		break;
	case EXPR_BINARY:
		lower_binary(to, node);
		break;
	case EXPR_AND:
	case EXPR_OR:
		lower_logical(to, node);
		break;
	case EXPR_CHOICE:
		lower_choice(to, node);
		break;
	}
}

struct kymo_error *expr_lower(const struct expr_tree *tree, struct kymo_form *ret)
{
	struct lowering to = { .tree = tree, .form = ret };
	const struct kymo_expr_source *source = &tree->source;

	ret->n = 0;
	lower(&to, &tree->nodes[tree->n - 1]);
	if (to.is_full)
		return kymo_error_at(source->text, source->start,
				     "the expression is too long: it takes more than %d steps", KYMO_FORM_OPS_MAX);
	if (to.depth_max > KYMO_FORM_DEPTH_MAX)
		return kymo_error_at(source->text, source->start,
				     "the expression is too deep: more than %d values wait for others",
				     KYMO_FORM_DEPTH_MAX);
	if (to.n_faults > KYMO_FORM_FAULTS_MAX)
		return kymo_error_at(source->text, source->start,
				     "the expression has more than %d divisions and words of the stack",
				     KYMO_FORM_FAULTS_MAX);
	return NULL;
}
