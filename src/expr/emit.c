/*
 * Operations of forms. Each value lies on the form's stack as 64 bits of its type: with its sign, or zeros, before its
 * low bytes. So a conversion is an operation only where it loses bytes or changes what the bytes before mean.
 */
#include "expr/emit.h"

static bool may_fault(unsigned int code)
{
	return code == KYMO_FORM_STACK || code == KYMO_FORM_ASK || code == KYMO_FORM_THREAD ||
	       code == KYMO_FORM_RETVAL || code == KYMO_FORM_LOAD || code == KYMO_FORM_DIVIDE ||
	       code == KYMO_FORM_REMAINDER || code == KYMO_FORM_STORE;
}

/* What the operation does to the depth, for those that come one after the other. */
static int depth_change(unsigned int code)
{
	if (code <= KYMO_FORM_PICK)
		return 1;
	if (code == KYMO_FORM_SWAP)
		return 0;
	return code <= KYMO_FORM_NOT ? 0 : -1; /* after a jump comes the other way, without the value of this one */
}

struct kymo_form_op *expr_emit(struct expr_code *to, struct kymo_form_op op)
{
	static struct kymo_form_op lost;

	to->depth += (unsigned int)depth_change(op.code);
	to->depth_max = to->depth > to->depth_max ? to->depth : to->depth_max;
	to->n_faults += may_fault(op.code);
	if (to->form->n == KYMO_FORM_OPS_MAX) {
		to->is_full = true;
		return &lost;
	}
	to->form->ops[to->form->n] = op;
	return &to->form->ops[to->form->n++];
}

void expr_emit_code(struct expr_code *to, enum kymo_form_code code, struct kymo_expr_type type)
{
	expr_emit(to, (struct kymo_form_op){ .code = (uint8_t)code, .size = type.size, .is_signed = type.is_signed });
}

void expr_emit_value(struct expr_code *to, int64_t value)
{
	expr_emit(to, (struct kymo_form_op){ .code = KYMO_FORM_VALUE, .value = value });
}

void expr_emit_ops(struct expr_code *to, const struct kymo_form_op *ops, unsigned int n)
{
	const uint32_t first = to->form->n;
	bool has_jump = false;

	for (unsigned int i = 0; i < n; i++) {
		struct kymo_form_op op = ops[i];

		if (kymo_form_is_jump(&op))
			op.value += first;
		has_jump |= kymo_form_is_jump(&op);
		expr_emit(to, op);
	}
	if (has_jump)
		to->joined = to->form->n;
}

/* The last operation but `back`, if nothing but it comes to what is after it; or NULL. */
static struct kymo_form_op *last(struct expr_code *to, uint32_t back)
{
	return to->form->n > to->joined + back ? &to->form->ops[to->form->n - 1 - back] : NULL;
}

/* "func" or "probe", which is no address that the program has. */
static bool is_word(const struct kymo_form_op *op)
{
	return op && !op->size && (op->code == KYMO_FORM_FUNC || op->code == KYMO_FORM_PROBE);
}

void expr_emit_offset(struct expr_code *to, uint64_t offset)
{
	struct kymo_form_op *op = last(to, 0), *before = last(to, 1);

	if (!offset)
		return;
	if (op && (op->code == KYMO_FORM_ADDRESS || op->code == KYMO_FORM_VALUE || is_word(op))) {
		op->value = (int64_t)((uint64_t)op->value + offset);
	} else if (op && before && op->code == KYMO_FORM_ADD && before->code == KYMO_FORM_VALUE) {
		before->value = (int64_t)((uint64_t)before->value + offset);
	} else {
		expr_emit_value(to, (int64_t)offset);
		expr_emit_code(to, KYMO_FORM_ADD, (struct kymo_expr_type){ .size = 8 });
	}
}

void expr_emit_again(struct expr_code *to)
{
	struct kymo_form_op *op = last(to, 0);

	if (op && op->code == KYMO_FORM_ASK && op->value == KYMO_FORM_NAME)
		op->value = KYMO_FORM_NAME_AGAIN;
}

void expr_emit_scale(struct expr_code *to, uint64_t factor)
{
	if (factor == 1)
		return;
	expr_emit_value(to, (int64_t)factor);
	expr_emit_code(to, KYMO_FORM_MULTIPLY, (struct kymo_expr_type){ .size = 8 });
}

void expr_emit_load(struct expr_code *to, struct kymo_expr_type type)
{
	struct kymo_form_op *op = last(to, 0);

	if (is_word(op)) {
		op->size = type.size;
		return;
	}
	expr_emit(to, (struct kymo_form_op){ .code = KYMO_FORM_LOAD, .size = type.size });
	if (type.is_signed && type.size < 8)
		expr_emit_code(to, KYMO_FORM_EXTEND, type);
}

void expr_emit_bits(struct expr_code *to, unsigned int shift, unsigned int n, bool is_signed)
{
	const struct kymo_expr_type wide = { .size = 8, .is_signed = is_signed };

	if (n == 64)
		return;
	if (shift + n < 64) {
		expr_emit_value(to, 64 - (int64_t)shift - n);
		expr_emit_code(to, KYMO_FORM_SHIFT_LEFT, wide);
	}
	expr_emit_value(to, 64 - (int64_t)n);
	expr_emit_code(to, KYMO_FORM_SHIFT_RIGHT, wide);
}

static bool converts(struct kymo_expr_type from, struct kymo_expr_type to)
{
	if (to.size == 8)
		return false;
	if (from.size < to.size)
		return from.is_signed && !to.is_signed;
	return from.size != to.size || from.is_signed != to.is_signed;
}

static bool is_truth(struct kymo_expr_type type)
{
	return type.of && !type.pointers && !type.n && type.of->kind == KYMO_CTYPE_BOOLEAN;
}

void expr_emit_real(struct expr_code *to, enum kymo_form_code code, struct kymo_expr_type type)
{
	static const enum kymo_form_code codes[] = {
		[KYMO_FORM_ADD] = KYMO_FORM_FLOAT_ADD,
		[KYMO_FORM_SUBTRACT] = KYMO_FORM_FLOAT_SUBTRACT,
		[KYMO_FORM_MULTIPLY] = KYMO_FORM_FLOAT_MULTIPLY,
		[KYMO_FORM_DIVIDE] = KYMO_FORM_FLOAT_DIVIDE,
		[KYMO_FORM_EQUAL] = KYMO_FORM_FLOAT_EQUAL,
		[KYMO_FORM_DIFFERENT] = KYMO_FORM_FLOAT_EQUAL,
		[KYMO_FORM_LESS] = KYMO_FORM_FLOAT_LESS,
		[KYMO_FORM_LESS_OR_EQUAL] = KYMO_FORM_FLOAT_LESS_OR_EQUAL,
	};

	expr_emit_code(to, codes[code], type);
	if (code == KYMO_FORM_DIFFERENT)
		expr_emit_code(to, KYMO_FORM_NOT, type);
}

void expr_emit_truth(struct expr_code *to, struct kymo_expr_type type)
{
	if (expr_type_is_real(type)) {
		expr_emit_value(to, 0);
		expr_emit_real(to, KYMO_FORM_DIFFERENT, type);
	} else {
		expr_emit_code(to, KYMO_FORM_TRUTH, type);
	}
}

/* One of the two types is floating-point. */
static void convert_real(struct expr_code *to, struct kymo_expr_type from, struct kymo_expr_type type)
{
	if (!expr_type_is_real(from)) {
		type.is_signed = from.is_signed || from.size < 8; /* a positive one is both */
		expr_emit_code(to, KYMO_FORM_TO_FLOAT, type);
	} else if (expr_type_is_real(type)) {
		if (from.size != type.size)
			expr_emit_code(to, KYMO_FORM_RESIZE_FLOAT, type);
	} else if (is_truth(type)) {
		expr_emit_truth(to, from);
	} else {
		from.is_signed = type.is_signed || type.size < 8;
		expr_emit_code(to, KYMO_FORM_FROM_FLOAT, from);
		if (type.size < 8)
			expr_emit_code(to, KYMO_FORM_EXTEND, type);
	}
}

void expr_emit_conversion(struct expr_code *to, struct kymo_expr_type from, struct kymo_expr_type type)
{
	if (expr_type_is_real(from) || expr_type_is_real(type))
		convert_real(to, from, type);
	else if (is_truth(type) && !is_truth(from))
		expr_emit_code(to, KYMO_FORM_TRUTH, type);
	else if (converts(from, type))
		expr_emit_code(to, KYMO_FORM_EXTEND, type);
}

void expr_begin_choice(struct expr_code *to, struct expr_choice *choice)
{
	expr_emit(to, (struct kymo_form_op){ .code = KYMO_FORM_JUMP_IF_ZERO });
	choice->to_other = to->form->n - 1;
	to->joined = to->form->n;
}

void expr_other_choice(struct expr_code *to, struct expr_choice *choice)
{
	expr_emit(to, (struct kymo_form_op){ .code = KYMO_FORM_JUMP });
	choice->to_end = to->form->n - 1;
	to->form->ops[choice->to_other].value = to->form->n;
	to->joined = to->form->n;
}

void expr_end_choice(struct expr_code *to, struct expr_choice *choice)
{
	to->form->ops[choice->to_end].value = to->form->n;
	to->joined = to->form->n;
}
