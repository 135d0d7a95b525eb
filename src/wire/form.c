#include "wire/form.h"

#include <string.h>

/* What an operation does to the depth of the stack. */
static const struct shape {
	uint8_t takes, gives;
	bool may_fault;
} shapes[KYMO_FORM_N_CODES] = {
	[KYMO_FORM_VALUE] = { 0, 1, false },
	[KYMO_FORM_REGISTER] = { 0, 1, false },
	[KYMO_FORM_STACK] = { 0, 1, true },
	[KYMO_FORM_RETVAL] = { 0, 1, true },
	[KYMO_FORM_CONTEXT] = { 0, 1, false },
	[KYMO_FORM_ASK] = { 0, 1, true },
	[KYMO_FORM_THREAD] = { 0, 1, true },
	[KYMO_FORM_ADDRESS] = { 0, 1, false },
	[KYMO_FORM_FILE] = { 0, 1, false },
	[KYMO_FORM_TEXT] = { 0, 1, false },
	[KYMO_FORM_FUNC] = { 0, 1, false },
	[KYMO_FORM_PROBE] = { 0, 1, false },
	[KYMO_FORM_VECTOR] = { 0, 1, false },
	[KYMO_FORM_PICK] = { 0, 1, false },
	[KYMO_FORM_LOAD] = { 1, 1, true },
	[KYMO_FORM_EXTEND] = { 1, 1, false },
	[KYMO_FORM_NEGATE] = { 1, 1, false },
	[KYMO_FORM_COMPLEMENT] = { 1, 1, false },
	[KYMO_FORM_TRUTH] = { 1, 1, false },
	[KYMO_FORM_NOT] = { 1, 1, false },
	[KYMO_FORM_ADD] = { 2, 1, false },
	[KYMO_FORM_SUBTRACT] = { 2, 1, false },
	[KYMO_FORM_MULTIPLY] = { 2, 1, false },
	[KYMO_FORM_DIVIDE] = { 2, 1, true },
	[KYMO_FORM_REMAINDER] = { 2, 1, true },
	[KYMO_FORM_AND] = { 2, 1, false },
	[KYMO_FORM_OR] = { 2, 1, false },
	[KYMO_FORM_XOR] = { 2, 1, false },
	[KYMO_FORM_SHIFT_LEFT] = { 2, 1, false },
	[KYMO_FORM_SHIFT_RIGHT] = { 2, 1, false },
	[KYMO_FORM_EQUAL] = { 2, 1, false },
	[KYMO_FORM_DIFFERENT] = { 2, 1, false },
	[KYMO_FORM_LESS] = { 2, 1, false },
	[KYMO_FORM_LESS_OR_EQUAL] = { 2, 1, false },
	[KYMO_FORM_DROP] = { 2, 1, false },
	[KYMO_FORM_WANT] = { 2, 1, false },
	[KYMO_FORM_JUMP] = { 0, 0, false },
	[KYMO_FORM_JUMP_IF_ZERO] = { 1, 0, false },
	[KYMO_FORM_SWAP] = { 2, 2, false },
	[KYMO_FORM_STORE] = { 2, 1, true },
	[KYMO_FORM_TO_FLOAT] = { 1, 1, false },
	[KYMO_FORM_FROM_FLOAT] = { 1, 1, false },
	[KYMO_FORM_RESIZE_FLOAT] = { 1, 1, false },
	[KYMO_FORM_FLOAT_ADD] = { 2, 1, false },
	[KYMO_FORM_FLOAT_SUBTRACT] = { 2, 1, false },
	[KYMO_FORM_FLOAT_MULTIPLY] = { 2, 1, false },
	[KYMO_FORM_FLOAT_DIVIDE] = { 2, 1, false },
	[KYMO_FORM_FLOAT_EQUAL] = { 2, 1, false },
	[KYMO_FORM_FLOAT_LESS] = { 2, 1, false },
	[KYMO_FORM_FLOAT_LESS_OR_EQUAL] = { 2, 1, false },
};

#define UNKNOWN 0xff /* no path has come to this operation yet */

static bool is_size(unsigned int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool is_sound_op(const struct kymo_form_op *op, unsigned int n_registers, unsigned int stack_max)
{
	switch (op->code) {
	case KYMO_FORM_FUNC:
	case KYMO_FORM_PROBE:
		return op->value >= 0 && (!op->size || is_size(op->size));
	case KYMO_FORM_REGISTER:
		return op->value >= 0 && op->value < n_registers;
	case KYMO_FORM_STACK:
		return op->value >= 0 && op->value <= stack_max;
	case KYMO_FORM_VECTOR:
		return op->value >= 0 && op->value < KYMO_FORM_VECTORS;
	case KYMO_FORM_PICK:
		return op->value >= 0 && op->value < KYMO_FORM_DEPTH_MAX;
	case KYMO_FORM_RETVAL:
		return op->value == 0 || op->value == 1;
	case KYMO_FORM_CONTEXT:
		return op->value >= 0 && op->value < KYMO_FORM_N_CONTEXTS;
	case KYMO_FORM_ASK:
		return op->value >= 0 && op->value < KYMO_FORM_N_QUESTIONS;
	case KYMO_FORM_LOAD:
	case KYMO_FORM_STORE:
		return is_size(op->size);
	case KYMO_FORM_EXTEND:
		return op->size == 1 || op->size == 2 || op->size == 4;
	case KYMO_FORM_SHIFT_LEFT:
	case KYMO_FORM_SHIFT_RIGHT:
		return op->size == 4 || op->size == 8;
	default:
		return op->code < KYMO_FORM_N_CODES &&
		       (!kymo_form_is_of_floats(op->code) || op->size == 4 || op->size == 8);
	}
}

static bool is_word(const struct kymo_form_op *op)
{
	return op->code == KYMO_FORM_FUNC || op->code == KYMO_FORM_PROBE;
}

/* All paths come to an operation with the same depth. */
static bool arrive(uint8_t *depth, unsigned int with)
{
	if (*depth != UNKNOWN && *depth != with)
		return false;
	*depth = (uint8_t)with;
	return true;
}

/* The operation at `i`, to which one comes with `depths[i]`. */
static bool check_op(const struct kymo_form *form, uint32_t i, uint8_t *depths)
{
	const struct kymo_form_op *op = &form->ops[i];
	const struct shape *shape = &shapes[op->code];
	unsigned int after;

	if (depths[i] == UNKNOWN || depths[i] < shape->takes || (op->code == KYMO_FORM_PICK && depths[i] <= op->value))
		return false;
	after = depths[i] - shape->takes + shape->gives;
	if (after > KYMO_FORM_DEPTH_MAX)
		return false;
	if (kymo_form_is_jump(op) &&
	    (op->value <= (int64_t)i || op->value > form->n || !arrive(&depths[op->value], after)))
		return false;
	return op->code == KYMO_FORM_JUMP || arrive(&depths[i + 1], after);
}

static bool is_last(const struct kymo_form_op *op)
{
	return op->code == KYMO_FORM_WANT || op->code == KYMO_FORM_STORE;
}

/* WANT or STORE is the last operation, and no jump goes past it. */
static bool ends_in_it(const struct kymo_form *form)
{
	const bool has_it = is_last(&form->ops[form->n - 1]);

	for (uint32_t i = 0; i < form->n; i++)
		if ((is_last(&form->ops[i]) && i + 1 < form->n) ||
		    (has_it && kymo_form_is_jump(&form->ops[i]) && form->ops[i].value == form->n))
			return false;
	return true;
}

bool kymo_form_check(const struct kymo_form *form, unsigned int n_registers, unsigned int stack_max)
{
	uint8_t depths[KYMO_FORM_OPS_MAX + 1];
	unsigned int n_faults = 0;

	if (!form->n || form->n > KYMO_FORM_OPS_MAX || !ends_in_it(form))
		return false;
	if (kymo_form_has(form, KYMO_FORM_TEXT, NULL) && !memchr(form->text, 0, sizeof(form->text)))
		return false;
	for (uint32_t i = 0; i <= form->n; i++)
		depths[i] = UNKNOWN;
	depths[0] = 0;
	for (uint32_t i = 0; i < form->n; i++) {
		if (!is_sound_op(&form->ops[i], n_registers, stack_max) || !check_op(form, i, depths))
			return false;
		if (is_word(&form->ops[i]) && !form->ops[i].size && form->n > 1)
			return false;
		n_faults += shapes[form->ops[i].code].may_fault;
	}
	return depths[form->n] == 1 && n_faults <= KYMO_FORM_FAULTS_MAX;
}

bool kymo_form_can_fault(const struct kymo_form *form)
{
	for (uint32_t i = 0; i < form->n; i++)
		if (shapes[form->ops[i].code].may_fault)
			return true;
	return false;
}

bool kymo_form_has_floats(const struct kymo_form *form)
{
	for (uint32_t i = 0; i < form->n; i++)
		if (kymo_form_is_of_floats(form->ops[i].code))
			return true;
	return false;
}

bool kymo_form_has_words(const struct kymo_form *form)
{
	for (uint32_t i = 0; i < form->n; i++)
		if (is_word(&form->ops[i]))
			return true;
	return false;
}

bool kymo_form_has(const struct kymo_form *form, enum kymo_form_code code, const int64_t *value)
{
	for (uint32_t i = 0; i < form->n; i++)
		if (form->ops[i].code == code && (!value || form->ops[i].value == *value))
			return true;
	return false;
}

/* ---- the value ------------------------------------------------------------------------------- */

static bool push(const struct kymo_form *form, const struct kymo_form_op *op, const struct kymo_form_input *input,
		 uint64_t *ret)
{
	switch (op->code) {
	case KYMO_FORM_VALUE:
		*ret = (uint64_t)op->value;
		return true;
	case KYMO_FORM_REGISTER:
		*ret = input->registers[op->value];
		return true;
	case KYMO_FORM_VECTOR:
		if (!input->vectors)
			return false;
		*ret = input->vectors[op->value];
		return true;
	case KYMO_FORM_CONTEXT:
		*ret = input->context[op->value];
		return true;
	case KYMO_FORM_ASK:
		return input->ask && input->ask(input->data, (enum kymo_form_question)op->value, ret);
	case KYMO_FORM_THREAD:
		*ret = input->thread;
		return input->thread != 0;
	case KYMO_FORM_ADDRESS:
		*ret = input->bias + (uint64_t)op->value;
		return true;
	case KYMO_FORM_TEXT:
		*ret = (uint64_t)form->text;
		return true;
	case KYMO_FORM_FUNC: /* what it is called is not known here */
	case KYMO_FORM_PROBE:
		return false;
	case KYMO_FORM_FILE:
		*ret = input->file + (uint64_t)op->value;
		return true;
	case KYMO_FORM_STACK:
		if ((uint64_t)op->value >= input->n_stack)
			return false;
		*ret = input->stack[op->value];
		return true;
	default: /* RETVAL */
		if (!input->retval)
			return false;
		*ret = *input->retval;
		return true;
	}
}

static uint64_t extend_value(const struct kymo_form_op *op, uint64_t a)
{
	const unsigned int rest = 64 - 8u * op->size;

	return op->is_signed ? (uint64_t)((int64_t)(a << rest) >> rest) : a << rest >> rest;
}

/* ---- floating-point numbers ------------------------------------------------------------------ */

static float single(uint64_t bits)
{
	const uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static double real(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t single_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static uint64_t real_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#define SIGN (UINT64_C(1) << 63)
#define QUIET_SINGLE (UINT32_C(1) << 22) /* of what is no number */
#define QUIET_REAL (UINT64_C(1) << 51)

static uint64_t to_float(const struct kymo_form_op *op, uint64_t a)
{
	if (op->size == 4)
		return single_bits(op->is_signed ? (float)(int64_t)a : (float)a);
	return real_bits(op->is_signed ? (double)(int64_t)a : (double)a);
}

static uint64_t to_whole(double value)
{
	return value >= -0x1p63 && value < 0x1p63 ? (uint64_t)(int64_t)value : SIGN;
}

/* A float is a double, too. */
static uint64_t from_float(const struct kymo_form_op *op, uint64_t a)
{
	const double value = op->size == 4 ? (double)single(a) : real(a);
	const uint64_t whole = to_whole(value);

	return op->is_signed || whole != SIGN ? whole : to_whole(value - 0x1p63) ^ SIGN;
}

/* Of two that are no numbers the first one is the result, whatever a compiler makes of the order. */
static uint64_t join_singles(unsigned int code, float a, float b)
{
	if (code <= KYMO_FORM_FLOAT_DIVIDE && (a != a || b != b))
		return single_bits(a != a ? a : b) | QUIET_SINGLE;
	switch (code) {
	case KYMO_FORM_FLOAT_ADD:
		return single_bits(a + b);
	case KYMO_FORM_FLOAT_SUBTRACT:
		return single_bits(a - b);
	case KYMO_FORM_FLOAT_MULTIPLY:
		return single_bits(a * b);
	case KYMO_FORM_FLOAT_DIVIDE:
		return single_bits(a / b);
	case KYMO_FORM_FLOAT_EQUAL:
		return a == b;
	case KYMO_FORM_FLOAT_LESS:
		return a < b;
	default:
		return a <= b;
	}
}

static uint64_t join_reals(unsigned int code, double a, double b)
{
	if (code <= KYMO_FORM_FLOAT_DIVIDE && (a != a || b != b))
		return real_bits(a != a ? a : b) | QUIET_REAL;
	switch (code) {
	case KYMO_FORM_FLOAT_ADD:
		return real_bits(a + b);
	case KYMO_FORM_FLOAT_SUBTRACT:
		return real_bits(a - b);
	case KYMO_FORM_FLOAT_MULTIPLY:
		return real_bits(a * b);
	case KYMO_FORM_FLOAT_DIVIDE:
		return real_bits(a / b);
	case KYMO_FORM_FLOAT_EQUAL:
		return a == b;
	case KYMO_FORM_FLOAT_LESS:
		return a < b;
	default:
		return a <= b;
	}
}

static uint64_t change(const struct kymo_form_op *op, uint64_t a)
{
	switch (op->code) {
	case KYMO_FORM_TO_FLOAT:
		return to_float(op, a);
	case KYMO_FORM_FROM_FLOAT:
		return from_float(op, a);
	case KYMO_FORM_RESIZE_FLOAT:
		return op->size == 4 ? single_bits((float)real(a)) : real_bits((double)single(a));
	case KYMO_FORM_EXTEND:
		return extend_value(op, a);
	case KYMO_FORM_NEGATE:
		return -a;
	case KYMO_FORM_COMPLEMENT:
		return ~a;
	case KYMO_FORM_TRUTH:
		return a != 0;
	default: /* NOT */
		return a == 0;
	}
}

/* `b` is not 0. */
static uint64_t divide(const struct kymo_form_op *op, uint64_t a, uint64_t b)
{
	const bool is_division = op->code == KYMO_FORM_DIVIDE;

	if (!op->is_signed)
		return is_division ? a / b : a % b;
	if (b == UINT64_MAX) /* the least number has no counterpart */
		return is_division ? -a : 0;
	return (uint64_t)(is_division ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static uint64_t shift(const struct kymo_form_op *op, uint64_t a, uint64_t b)
{
	b &= 8u * op->size - 1;
	if (op->code == KYMO_FORM_SHIFT_LEFT)
		return a << b;
	return op->is_signed ? (uint64_t)((int64_t)a >> b) : a >> b;
}

static bool is_less(const struct kymo_form_op *op, uint64_t a, uint64_t b)
{
	return op->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t evaluate_binary(const struct kymo_form_op *op, uint64_t a, uint64_t b)
{
	if (kymo_form_is_of_floats(op->code))
		return op->size == 4 ? join_singles(op->code, single(a), single(b))
				     : join_reals(op->code, real(a), real(b));
	switch (op->code) {
	case KYMO_FORM_ADD:
		return a + b;
	case KYMO_FORM_SUBTRACT:
		return a - b;
	case KYMO_FORM_MULTIPLY:
		return a * b;
	case KYMO_FORM_AND:
		return a & b;
	case KYMO_FORM_OR:
		return a | b;
	case KYMO_FORM_XOR:
		return a ^ b;
	case KYMO_FORM_SHIFT_LEFT:
	case KYMO_FORM_SHIFT_RIGHT:
		return shift(op, a, b);
	case KYMO_FORM_EQUAL:
		return a == b;
	case KYMO_FORM_DIFFERENT:
		return a != b;
	case KYMO_FORM_LESS:
		return is_less(op, a, b);
	case KYMO_FORM_LESS_OR_EQUAL:
		return !is_less(op, b, a);
	case KYMO_FORM_DROP:
	case KYMO_FORM_WANT:
		return a;
	default: /* DIVIDE, REMAINDER */
		return divide(op, a, b);
	}
}

static void swap(uint64_t *two)
{
	const uint64_t first = two[0];

	two[0] = two[1];
	two[1] = first;
}

static bool is_division(const struct kymo_form_op *op)
{
	return op->code == KYMO_FORM_DIVIDE || op->code == KYMO_FORM_REMAINDER;
}

bool kymo_form_run(const struct kymo_form *form, const struct kymo_form_input *input, uint64_t *ret)
{
	uint64_t stack[KYMO_FORM_DEPTH_MAX + 1];
	unsigned int depth = 0;

	for (uint32_t i = 0; i < form->n; i++) {
		const struct kymo_form_op *op = &form->ops[i];
		const struct shape *shape = &shapes[op->code];

		if (op->code == KYMO_FORM_JUMP || (op->code == KYMO_FORM_JUMP_IF_ZERO && !stack[--depth])) {
			i = (uint32_t)op->value - 1;
		} else if (op->code == KYMO_FORM_PICK) {
			stack[depth] = stack[depth - 1 - (unsigned int)op->value];
			depth++;
		} else if (op->code == KYMO_FORM_SWAP) {
			swap(&stack[depth - 2]);
		} else if (shape->takes == 2) {
			if ((is_division(op) && !stack[depth - 1]) || op->code == KYMO_FORM_STORE)
				return false;
			if (op->code == KYMO_FORM_WANT && input->wanted)
				*input->wanted = stack[depth - 1];
			stack[depth - 2] = evaluate_binary(op, stack[depth - 2], stack[depth - 1]);
			depth--;
		} else if (!shape->takes) {
			if (!push(form, op, input, &stack[depth++]))
				return false;
		} else if (op->code == KYMO_FORM_LOAD) {
			if (!input->load || !input->load(input->data, stack[depth - 1], op->size, &stack[depth - 1]))
				return false;
		} else if (shape->gives) {
			stack[depth - 1] = change(op, stack[depth - 1]);
		}
	}
	*ret = stack[0];
	return true;
}
