/*
 * Tree to form. What is in memory is pushed as its address, and loaded where its value is needed. 64-bit operations
 * serve all types, with an extension after those that may carry beyond 32 bits.
 */
#include "expr/lower.h"

#include <string.h>

#include "base/caret.h"
#include "expr/convert.h"
#include "expr/emit.h"
#include "expr/memory.h"
#include "expr/number.h"

struct lowering {
	const struct expr_tree *tree;
	struct expr_code code;
};

static void lower(struct lowering *to, const struct expr_node *node);

static const struct expr_node *child(const struct lowering *to, uint8_t i)
{
	return &to->tree->nodes[i];
}

/* The value, of what is in memory, too. Arrays and structures stay addresses. */
static void lower_value(struct lowering *to, const struct expr_node *node)
{
	const enum kymo_expr_class class = kymo_expr_class_of(node->type);

	lower(to, node);
	if (!node->is_lvalue || class == KYMO_EXPR_ARRAY || class == KYMO_EXPR_STRUCT || class == KYMO_EXPR_STRING)
		return;
	expr_emit_load(&to->code, node->type);
	if (node->bit_size)
		expr_emit_bits(&to->code, node->bit_shift, node->bit_size, node->type.is_signed);
}

static void lower_as(struct lowering *to, uint8_t i, struct kymo_expr_type type)
{
	const struct expr_node *node = child(to, i);

	lower_value(to, node);
	expr_emit_conversion(&to->code, expr_value_type(node), type);
}

/* ---- what is in memory ----------------------------------------------------------------------- */

static const struct kymo_expr_type address = { .size = 8 };

static void follow_reference(struct lowering *to, const struct expr_node *node)
{
	if (node->is_reference)
		expr_emit_load(&to->code, address);
}

/* What the name pushes has more bytes than the name's type, or none known before them. */
static void lower_name(struct lowering *to, const struct expr_node *node)
{
	expr_emit_ops(&to->code, &to->tree->ops[node->first_op], node->n_ops);
	if (!node->is_lvalue && node->type.size < 8)
		expr_emit_code(&to->code, KYMO_FORM_EXTEND, node->type);
	follow_reference(to, node);
}

static void lower_member(struct lowering *to, const struct expr_node *node)
{
	const struct expr_node *of = child(to, node->a);

	if (node->is_arrow)
		lower_value(to, of);
	else
		lower(to, of);
	if (node->is_lvalue) {
		expr_emit_offset(&to->code, node->offset);
		follow_reference(to, node);
	} else {
		expr_emit_bits(&to->code, node->bit_shift, node->bit_size, node->type.is_signed);
	}
}

static void lower_index(struct lowering *to, const struct expr_node *node)
{
	const uint64_t size = kymo_expr_type_bytes(node->type);
	const struct expr_node *b = child(to, node->b);

	lower_value(to, child(to, node->a));
	if (b->kind == EXPR_CONSTANT) {
		expr_emit_offset(&to->code, (uint64_t)b->value * size);
		return;
	}
	lower_value(to, b);
	expr_emit_scale(&to->code, size);
	expr_emit_code(&to->code, KYMO_FORM_ADD, address);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* One comparison of up to 8 bytes at `from`. */
static void lower_bytes(struct lowering *to, const struct expr_node *string, size_t from, const char *text,
			uint8_t size)
{
	int64_t expected = 0;

	memcpy(&expected, text + from, size);
	lower_value(to, child(to, string->a));
	if (from)
		expr_emit_again(&to->code);
	expr_emit_offset(&to->code, from);
	expr_emit_load(&to->code, (struct kymo_expr_type){ .size = size });
	expr_emit_value(&to->code, expected);
	expr_emit_code(&to->code, KYMO_FORM_EQUAL, address);
}

/* Bytes that the next comparison takes of the `n` that are left: as many as one can. */
static uint8_t chunk(size_t n)
{
	return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
}

/* The next comparison is made where the last one holds. */
static void lower_match_from(struct lowering *to, const struct expr_node *string, const char *text, size_t n,
			     size_t from);

static void and_match_from(struct lowering *to, const struct expr_node *string, const char *text, size_t n, size_t from)
{
	struct expr_choice choice;

	expr_begin_choice(&to->code, &choice);
	lower_match_from(to, string, text, n, from);
	expr_other_choice(&to->code, &choice);
	expr_emit_value(&to->code, 0);
	expr_end_choice(&to->code, &choice);
}

/* The length, which lies below, is `n`; or there is a NUL after so many bytes. */
static void lower_end(struct lowering *to, const struct expr_node *string, const char *text, size_t n)
{
	struct expr_choice choice;

	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_PICK });
	expr_emit_value(&to->code, (int64_t)n);
	expr_emit_code(&to->code, KYMO_FORM_EQUAL, address);
	expr_begin_choice(&to->code, &choice);
	expr_emit_value(&to->code, 1);
	expr_other_choice(&to->code, &choice);
	lower_bytes(to, string, n, text, 1);
	expr_end_choice(&to->code, &choice);
}

/* The text from `from` on, and its NUL if that is in `n`: what is behind is not read where what is before differs. */
static void lower_match_from(struct lowering *to, const struct expr_node *string, const char *text, size_t n,
			     size_t from)
{
	uint8_t size;

	if (from == n) {
		lower_end(to, string, text, n);
		return;
	}
	size = chunk(n - from);
	lower_bytes(to, string, from, text, size);
	if ((from + size < n || expr_is_of_length(string)) && !to->code.is_full)
		and_match_from(to, string, text, n, from + size);
}

/* A text of as many bytes as a value says. That is computed once, and lies below all else. */
static void lower_match_of_length(struct lowering *to, const struct expr_node *string, const char *text, size_t n)
{
	struct expr_choice choice;

	lower_value(to, child(to, string->b));
	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_PICK });
	expr_emit_value(&to->code, (int64_t)n);
	expr_emit_code(&to->code, KYMO_FORM_LESS, address);
	expr_begin_choice(&to->code, &choice);
	expr_emit_value(&to->code, 0);
	expr_other_choice(&to->code, &choice);
	lower_match_from(to, string, text, n, 0);
	expr_end_choice(&to->code, &choice);
	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_SWAP });
	expr_emit_code(&to->code, KYMO_FORM_DROP, address);
}

static void lower_match(struct lowering *to, const struct expr_node *node)
{
	const struct expr_node *string = child(to, node->a);
	char text[EXPR_TEXT_MAX + 1];
	const char *end;
	size_t n = 0;

	kymo_error_destroy(expr_read_text(to->tree, child(to, node->b)->at, &end, text, &n)); /* it was read before */
	if (expr_is_of_length(string)) {
		lower_match_of_length(to, string, text, n);
	} else {
		n++;
		if (string->value && (size_t)string->value < n) /* str(p, n) compares as many as it has */
			n = (size_t)string->value;
		lower_match_from(to, string, text, n, 0);
	}
	if (node->code == KYMO_FORM_DIFFERENT)
		expr_emit_code(&to->code, KYMO_FORM_NOT, node->type);
}

static const struct kymo_expr_type wide = { .size = 8, .is_signed = true };

/* 0 in place of what is below it, and -1, the largest number of bytes, in place of what is beyond 31 bits. */
static void lower_elements(struct lowering *to)
{
	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_PICK });
	expr_emit_value(&to->code, 63);
	expr_emit_code(&to->code, KYMO_FORM_SHIFT_RIGHT, wide);
	expr_emit_code(&to->code, KYMO_FORM_COMPLEMENT, wide);
	expr_emit_code(&to->code, KYMO_FORM_AND, wide);
	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_PICK });
	expr_emit_value(&to->code, 31);
	expr_emit_code(&to->code, KYMO_FORM_SHIFT_RIGHT, address);
	expr_emit_code(&to->code, KYMO_FORM_TRUTH, wide);
	expr_emit_code(&to->code, KYMO_FORM_NEGATE, wide);
	expr_emit_code(&to->code, KYMO_FORM_OR, wide);
}

/*
 * What is recorded is as long as a value says: the form has that, too. Of a piece the number of the last element is
 * known. One before the first makes an empty piece: also n - 1, where n is unsigned and 0.
 */
static void lower_want(struct lowering *to, const struct expr_node *node)
{
	const struct kymo_expr_type type = expr_value_type(child(to, node->b));

	lower_value(to, child(to, node->b));
	if (node->kind == EXPR_PIECE_OF) {
		if (type.size == 4 && !type.is_signed)
			expr_emit_code(&to->code, KYMO_FORM_EXTEND,
				       (struct kymo_expr_type){ .size = 4, .is_signed = true });
		expr_emit_value(&to->code, 1 - node->value);
		expr_emit_code(&to->code, KYMO_FORM_ADD, address);
		lower_elements(to);
		expr_emit_scale(&to->code, kymo_expr_type_bytes(node->type) / node->type.n);
	}
	expr_emit_code(&to->code, KYMO_FORM_WANT, address);
}

/* ---- operators ------------------------------------------------------------------------------- */

static void lower_unary_of_real(struct lowering *to, const struct expr_node *node)
{
	const struct kymo_expr_type type = child(to, node->a)->type;

	lower_value(to, child(to, node->a));
	if (node->code == KYMO_FORM_NOT) {
		expr_emit_value(&to->code, 0);
		expr_emit_real(&to->code, KYMO_FORM_EQUAL, type);
	} else {
		expr_emit_value(&to->code, (int64_t)(UINT64_C(1) << (8 * type.size - 1)));
		expr_emit_code(&to->code, KYMO_FORM_XOR, address);
	}
}

static void lower_unary(struct lowering *to, const struct expr_node *node)
{
	if (expr_type_is_real(child(to, node->a)->type)) {
		lower_unary_of_real(to, node);
		return;
	}
	if (node->code == KYMO_FORM_NOT) {
		lower_value(to, child(to, node->a));
		expr_emit_code(&to->code, KYMO_FORM_NOT, node->type);
		return;
	}
	lower_as(to, node->a, node->type);
	expr_emit_code(&to->code, node->code, node->type);
	if (node->type.size < 8)
		expr_emit_code(&to->code, KYMO_FORM_EXTEND, node->type);
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

/* Sums of pointers and numbers go by the size of what is pointed to. */
static void lower_pointer_sum(struct lowering *to, const struct expr_node *node)
{
	const struct expr_node *a = child(to, node->a), *b = child(to, node->b);
	const bool has_a = expr_is_pointer(a), has_b = expr_is_pointer(b);
	const uint64_t size = expr_element_size(expr_value_type(has_a ? a : b));

	lower_value(to, a);
	if (!has_a)
		expr_emit_scale(&to->code, size);
	lower_value(to, b);
	if (!has_b)
		expr_emit_scale(&to->code, size);
	expr_emit_code(&to->code, node->code, address);
	if (has_a && has_b && size > 1) {
		expr_emit_value(&to->code, (int64_t)size);
		expr_emit_code(&to->code, KYMO_FORM_DIVIDE, node->type);
	}
}

static void lower_binary(struct lowering *to, const struct expr_node *node)
{
	const struct expr_node *a = child(to, node->a), *b = child(to, node->b);
	struct kymo_expr_type type = node->type;

	if (expr_is_comparison(node->code)) {
		type = expr_common(a, b);
	} else if (expr_is_pointer(a) || expr_is_pointer(b)) {
		lower_pointer_sum(to, node);
		return;
	}
	lower_as(to, node->swaps ? node->b : node->a, type);
	if (is_shift(node->code))
		lower_value(to, b);
	else
		lower_as(to, node->swaps ? node->a : node->b, type);
	if (expr_type_is_real(type)) {
		expr_emit_real(&to->code, node->code, type);
		return;
	}
	expr_emit_code(&to->code, node->code, type);
	if (type.size < 8 && carries(node))
		expr_emit_code(&to->code, KYMO_FORM_EXTEND, type);
}

static void lower_truth(struct lowering *to, uint8_t i)
{
	lower_value(to, child(to, i));
	expr_emit_truth(&to->code, expr_value_type(child(to, i)));
}

/* What a jump takes: zero, or another number. */
static void lower_condition(struct lowering *to, uint8_t i)
{
	if (expr_type_is_real(child(to, i)->type))
		lower_truth(to, i);
	else
		lower_value(to, child(to, i));
}

static void lower_logical(struct lowering *to, const struct expr_node *node)
{
	struct expr_choice choice;

	lower_condition(to, node->a);
	expr_begin_choice(&to->code, &choice);
	if (node->kind == EXPR_AND)
		lower_truth(to, node->b);
	else
		expr_emit_value(&to->code, 1);
	expr_other_choice(&to->code, &choice);
	if (node->kind == EXPR_AND)
		expr_emit_value(&to->code, 0);
	else
		lower_truth(to, node->b);
	expr_end_choice(&to->code, &choice);
}

static void lower_choice(struct lowering *to, const struct expr_node *node)
{
	struct expr_choice choice;

	lower_condition(to, node->a);
	expr_begin_choice(&to->code, &choice);
	lower_as(to, node->b, node->type);
	expr_other_choice(&to->code, &choice);
	lower_as(to, node->c, node->type);
	expr_end_choice(&to->code, &choice);
}

static void lower_assignment(struct lowering *to, const struct expr_node *node)
{
	lower(to, child(to, node->a));
	lower_as(to, node->b, node->type);
	expr_emit(&to->code, (struct kymo_form_op){ .code = KYMO_FORM_STORE, .size = node->type.size });
}

/* The value, or of an lvalue its address. */
static void lower(struct lowering *to, const struct expr_node *node)
{
	switch (node->kind) {
	case EXPR_CONSTANT:
		expr_emit_value(&to->code, node->value);
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
	case EXPR_DEREF:
	case EXPR_STRING:
	case EXPR_BUFFER:
	case EXPR_STRING_OF:
	case EXPR_BUFFER_OF:
		lower_value(to, child(to, node->a));
		break;
	case EXPR_ADDRESS:
		lower(to, child(to, node->a));
		break;
	case EXPR_MEMBER:
		lower_member(to, node);
		break;
	case EXPR_PIECE:
	case EXPR_PIECE_OF:
		lower_value(to, child(to, node->a));
		expr_emit_offset(&to->code, node->offset);
		break;
	case EXPR_INDEX:
		lower_index(to, node);
		break;
	case EXPR_BINARY:
		lower_binary(to, node);
		break;
	case EXPR_MATCH:
		lower_match(to, node);
		break;
	case EXPR_AND:
	case EXPR_OR:
		lower_logical(to, node);
		break;
	case EXPR_CHOICE:
		lower_choice(to, node);
		break;
	case EXPR_ASSIGN:
		lower_assignment(to, node);
		break;
	case EXPR_UNKNOWN:
	case EXPR_TEXT:
	case EXPR_SIZEOF: /* none is left by check.c */
		break;
	}
}

struct kymo_error *expr_lower(const struct expr_tree *tree, struct kymo_form *ret)
{
	struct lowering to = { .tree = tree, .code.form = ret };
	const struct kymo_expr_source *source = &tree->source;
	const struct expr_node *root = &tree->nodes[tree->n - 1];

	ret->n = 0;
	lower_value(&to, root);
	if (expr_is_of_length(root))
		lower_want(&to, root);
	if (to.code.is_full)
		return kymo_error_at(source->text, source->start,
				     "the expression is too long: it takes more than %d steps", KYMO_FORM_OPS_MAX);
	if (to.code.depth_max > KYMO_FORM_DEPTH_MAX)
		return kymo_error_at(source->text, source->start,
				     "the expression is too deep: more than %d values wait for others",
				     KYMO_FORM_DEPTH_MAX);
	if (to.code.n_faults > KYMO_FORM_FAULTS_MAX)
		return kymo_error_at(source->text, source->start,
				     "the expression has more than %d divisions and reads of memory",
				     KYMO_FORM_FAULTS_MAX);
	return NULL;
}
