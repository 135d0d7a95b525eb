/*
 * One operation of a form for one instruction, but for three things. Forms shift by a count modulo 64, so a count that
 * is not known is compared first. A form has jumps where the value is zero, an expression those where it is not. What
 * is computed from constants alone becomes one, as gdb writes a negative number as a positive one that is extended.
 */
#include "gdb/agent_form.h"

#include "arch/fetch.h"
#include "arch/registers.h"
#include "gdb/agent_code.h"
#include "gdb/agent_print.h"

enum {
	CODE_MAX = 1024, /* bytes: more than fit into a form */
	NONE = UINT16_MAX,
	BITS = 64,
};

struct compiler {
	const uint8_t *code;
	size_t size, at;
	uint64_t pc;
	struct kymo_form *form;
	bool has_failed;
	struct gdb_print *print;             /* NULL: it has a value, and prints nothing */
	uint16_t ops[CODE_MAX + 1];          /* by instruction: its first operation, or NONE. At `size`: the end */
	bool is_target[CODE_MAX + 1];        /* of a jump that was compiled already */
	uint16_t targets[KYMO_FORM_OPS_MAX]; /* of jumps, by operation: an instruction */
};

/* ---- operations ------------------------------------------------------------------------------ */

static void emit_op(struct compiler *to, struct kymo_form_op op)
{
	if (to->form->n == KYMO_FORM_OPS_MAX)
		to->has_failed = true;
	else
		to->form->ops[to->form->n++] = op;
}

static void emit_code(struct compiler *to, enum kymo_form_code code)
{
	emit_op(to, (struct kymo_form_op){ .code = (uint8_t)code, .size = 8 });
}

static void emit_signed(struct compiler *to, enum kymo_form_code code, bool is_signed)
{
	emit_op(to, (struct kymo_form_op){ .code = (uint8_t)code, .size = 8, .is_signed = is_signed });
}

static void emit_with(struct compiler *to, enum kymo_form_code code, uint64_t value)
{
	emit_op(to, (struct kymo_form_op){ .code = (uint8_t)code, .value = (int64_t)value });
}

/* To the instruction at `target`, which is after this one. */
static void emit_jump(struct compiler *to, enum kymo_form_code code, uint64_t target)
{
	if (target > to->size || target < to->at) {
		to->has_failed = true;
		return;
	}
	if (to->form->n < KYMO_FORM_OPS_MAX)
		to->targets[to->form->n] = (uint16_t)target;
	to->is_target[target] = true;
	emit_code(to, code);
}

/* To the operation after the next `n`. */
static void emit_skip(struct compiler *to, enum kymo_form_code code, uint32_t n)
{
	if (to->form->n < KYMO_FORM_OPS_MAX)
		to->targets[to->form->n] = NONE;
	emit_with(to, code, to->form->n + 1 + n);
}

/* Whether the value that instruction `first` takes is a constant, whichever way leads there; then it is taken back. */
static bool take_constant(struct compiler *to, size_t first, uint64_t *ret)
{
	const struct kymo_form_op *last = to->form->n ? &to->form->ops[to->form->n - 1] : NULL;

	if (to->is_target[first] || !last || last->code != KYMO_FORM_VALUE)
		return false;
	*ret = (uint64_t)last->value;
	to->form->n--;
	return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static uint64_t take_operand(struct compiler *to, size_t size)
{
	uint64_t value = 0;

	if (to->size - to->at < size) {
		to->has_failed = true;
		to->at = to->size;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value = value << 8 | to->code[to->at++];
	return value;
}

/* What has lost all of its bits: 0, or the sign. */
static void emit_shifted_out(struct compiler *to, enum kymo_form_code code, bool is_signed)
{
	emit_with(to, KYMO_FORM_VALUE, is_signed ? BITS - 1 : 0);
	emit_signed(to, is_signed ? code : KYMO_FORM_AND, is_signed);
}

static void compile_shift(struct compiler *to, size_t first, enum kymo_form_code code, bool is_signed)
{
	uint64_t count;

	if (!take_constant(to, first, &count)) {
		emit_with(to, KYMO_FORM_PICK, 0);
		emit_with(to, KYMO_FORM_VALUE, BITS);
		emit_signed(to, KYMO_FORM_LESS, false);
		emit_skip(to, KYMO_FORM_JUMP_IF_ZERO, 2);
		emit_signed(to, code, is_signed);
		emit_skip(to, KYMO_FORM_JUMP, 3);
		emit_code(to, KYMO_FORM_DROP);
		emit_shifted_out(to, code, is_signed);
	} else if (count < BITS) {
		emit_with(to, KYMO_FORM_VALUE, count);
		emit_signed(to, code, is_signed);
	} else {
		emit_shifted_out(to, code, is_signed);
	}
}

/* What changes nothing has no operation, but has to have a value: all operations that are no jumps leave one. */
static void need_value(struct compiler *to)
{
	if (to->form->n && !kymo_form_is_jump(&to->form->ops[to->form->n - 1]))
		return;
	emit_with(to, KYMO_FORM_PICK, 0);
	emit_code(to, KYMO_FORM_DROP);
}

static uint64_t extend_constant(uint64_t value, unsigned int bits, bool is_signed)
{
	const unsigned int rest = BITS - bits;

	return is_signed ? (uint64_t)((int64_t)(value << rest) >> rest) : value << rest >> rest;
}

static void compile_extension(struct compiler *to, size_t first, bool is_signed)
{
	const uint64_t bits = take_operand(to, 1);
	uint64_t value;

	if (!bits || bits >= BITS) {
		to->is_target[to->at] |= to->is_target[first]; /* what leads here leads to the next instruction */
		need_value(to);
	} else if (take_constant(to, first, &value)) {
		emit_with(to, KYMO_FORM_VALUE, extend_constant(value, (unsigned int)bits, is_signed));
	} else if (bits == 8 || bits == 16 || bits == 32) {
		emit_op(to, (struct kymo_form_op){
				    .code = KYMO_FORM_EXTEND, .size = (uint8_t)(bits / 8), .is_signed = is_signed });
	} else {
		emit_with(to, KYMO_FORM_VALUE, BITS - bits);
		emit_code(to, KYMO_FORM_SHIFT_LEFT);
		emit_with(to, KYMO_FORM_VALUE, BITS - bits);
		emit_signed(to, KYMO_FORM_SHIFT_RIGHT, is_signed);
	}
}

static void compile_register(struct compiler *to)
{
	const uint64_t number = take_operand(to, 2);
	const int general = kymo_register_of_debugger((unsigned int)number);

	if (number == KYMO_REGISTER_PC)
		emit_with(to, KYMO_FORM_VALUE, to->pc);
	else if (general >= 0)
		emit_with(to, KYMO_FORM_REGISTER, (uint64_t)general);
	else
		to->has_failed = true;
}

/* It jumps where the value is not 0. */
static void compile_jump_if(struct compiler *to)
{
	const uint64_t target = take_operand(to, 2);

	emit_code(to, KYMO_FORM_NOT);
	emit_jump(to, KYMO_FORM_JUMP_IF_ZERO, target);
	to->has_failed |= target == to->size; /* there is no instruction */
}

static void compile_jump(struct compiler *to)
{
	const uint64_t target = take_operand(to, 2);

	emit_jump(to, KYMO_FORM_JUMP, target);
	to->has_failed |= target == to->size;
}

/* The last instruction needs no jump: the form ends after it. */
static void compile_end(struct compiler *to)
{
	if (to->at < to->size)
		emit_jump(to, KYMO_FORM_JUMP, to->size);
}

/* Opcodes that are one operation. */
static bool is_one_operation(unsigned int op, struct kymo_form_op *ret)
{
	static const struct kymo_form_op plain[] = {
		[AGENT_ADD] = { .code = KYMO_FORM_ADD },
		[AGENT_SUB] = { .code = KYMO_FORM_SUBTRACT },
		[AGENT_MUL] = { .code = KYMO_FORM_MULTIPLY },
		[AGENT_DIV_SIGNED] = { .code = KYMO_FORM_DIVIDE, .is_signed = true },
		[AGENT_DIV_UNSIGNED] = { .code = KYMO_FORM_DIVIDE },
		[AGENT_REM_SIGNED] = { .code = KYMO_FORM_REMAINDER, .is_signed = true },
		[AGENT_REM_UNSIGNED] = { .code = KYMO_FORM_REMAINDER },
		[AGENT_LOG_NOT] = { .code = KYMO_FORM_NOT },
		[AGENT_BIT_AND] = { .code = KYMO_FORM_AND },
		[AGENT_BIT_OR] = { .code = KYMO_FORM_OR },
		[AGENT_BIT_XOR] = { .code = KYMO_FORM_XOR },
		[AGENT_BIT_NOT] = { .code = KYMO_FORM_COMPLEMENT },
		[AGENT_EQUAL] = { .code = KYMO_FORM_EQUAL },
		[AGENT_LESS_SIGNED] = { .code = KYMO_FORM_LESS, .is_signed = true },
		[AGENT_LESS_UNSIGNED] = { .code = KYMO_FORM_LESS },
		[AGENT_DUP] = { .code = KYMO_FORM_PICK },
		[AGENT_POP] = { .code = KYMO_FORM_DROP },
		[AGENT_SWAP] = { .code = KYMO_FORM_SWAP },
	};

	if (op >= sizeof(plain) / sizeof(plain[0]) || !plain[op].code)
		return false;
	*ret = plain[op];
	return true;
}

/* It takes a function and a channel, which are of no use here, and then the arguments: the first was pushed last. */
static void compile_printf(struct compiler *to, size_t first)
{
	const uint64_t n = take_operand(to, 1), size = take_operand(to, 2);
	struct gdb_print *print = to->print;
	uint64_t ignored;

	if (to->has_failed || !print || print->format || n > KYMO_WIRE_PRINT_ARGS || !size ||
	    to->size - to->at != size + 1 || to->code[to->at + size - 1] || to->code[to->at + size] != AGENT_END ||
	    !take_constant(to, first, &ignored) || !take_constant(to, first, &ignored)) {
		to->has_failed = true;
		return;
	}
	print->n = (size_t)n;
	print->format = (const char *)to->code + to->at;
	print->format_size = (size_t)size - 1;
	to->at += size;
}

static void compile_one(struct compiler *to)
{
	const size_t first = to->at;
	const unsigned int op = (unsigned int)take_operand(to, 1);
	struct kymo_form_op plain;

	switch (op) {
	case AGENT_LSH:
		compile_shift(to, first, KYMO_FORM_SHIFT_LEFT, false);
		break;
	case AGENT_RSH_SIGNED:
	case AGENT_RSH_UNSIGNED:
		compile_shift(to, first, KYMO_FORM_SHIFT_RIGHT, op == AGENT_RSH_SIGNED);
		break;
	case AGENT_EXT:
	case AGENT_ZERO_EXT:
		compile_extension(to, first, op == AGENT_EXT);
		break;
	case AGENT_REF8:
	case AGENT_REF16:
	case AGENT_REF32:
	case AGENT_REF64:
		emit_op(to,
			(struct kymo_form_op){ .code = KYMO_FORM_LOAD, .size = (uint8_t)(1u << (op - AGENT_REF8)) });
		break;
	case AGENT_IF_GOTO:
		compile_jump_if(to);
		break;
	case AGENT_GOTO:
		compile_jump(to);
		break;
	case AGENT_CONST8:
	case AGENT_CONST16:
	case AGENT_CONST32:
	case AGENT_CONST64:
		emit_with(to, KYMO_FORM_VALUE, take_operand(to, 1u << (op - AGENT_CONST8)));
		break;
	case AGENT_REG:
		compile_register(to);
		break;
	case AGENT_END:
		compile_end(to);
		break;
	case AGENT_PICK:
		emit_with(to, KYMO_FORM_PICK, take_operand(to, 1));
		break;
	case AGENT_PRINTF:
		compile_printf(to, first);
		break;
	default:
		to->has_failed |= !is_one_operation(op, &plain);
		if (!to->has_failed)
			emit_op(to, plain);
		break;
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void close_form_jumps(struct compiler *to)
{
	for (uint32_t i = 0; i < to->form->n; i++) {
		struct kymo_form_op *op = &to->form->ops[i];

		if (!kymo_form_is_jump(op) || to->targets[i] == NONE)
			continue;
		op->value = to->ops[to->targets[i]];
		to->has_failed |= op->value == NONE; /* into the middle of an instruction */
	}
}

static bool compile_all(struct compiler *to)
{
	size_t last = 0;

	if (!to->size || to->size > CODE_MAX)
		return false;
	for (size_t i = 0; i <= to->size; i++)
		to->ops[i] = NONE;
	to->form->n = 0;
	while (to->at < to->size && !to->has_failed) {
		last = to->at;
		to->ops[last] = (uint16_t)to->form->n;
		compile_one(to);
	}
	if (to->has_failed || to->code[last] != AGENT_END)
		return false;
	to->ops[to->size] = (uint16_t)to->form->n;
	close_form_jumps(to);
	return !to->has_failed;
}

bool gdb_agent_compile(const uint8_t *code, size_t size, uint64_t pc, struct kymo_form *ret)
{
	struct compiler to = { .code = code, .size = size, .pc = pc, .form = ret };

	return compile_all(&to) && kymo_form_check(ret, KYMO_FETCH_REGISTERS, 0);
}

static void cut_form(const struct kymo_form *from, uint32_t begin, uint32_t end, struct kymo_form *ret)
{
	ret->n = end - begin;
	for (uint32_t i = begin; i < end; i++) {
		ret->ops[i - begin] = from->ops[i];
		if (kymo_form_is_jump(&from->ops[i]))
			ret->ops[i - begin].value -= begin;
	}
}

/* The argument whose operations begin there is the longest form: each one behind it leaves one value more. Where it
 * ends; 0: it is none. */
static uint32_t take_argument(const struct kymo_form *all, uint32_t begin, struct kymo_form *ret)
{
	for (uint32_t end = all->n; end > begin; end--) {
		cut_form(all, begin, end, ret);
		if (kymo_form_check(ret, KYMO_FETCH_REGISTERS, 0))
			return end;
	}
	return 0;
}

bool gdb_agent_compile_print(const uint8_t *code, size_t size, uint64_t pc, struct gdb_print *ret)
{
	struct kymo_form all;
	struct compiler to = { .code = code, .size = size, .pc = pc, .form = &all, .print = ret };
	uint32_t at = 0;

	ret->format = NULL;
	if (!compile_all(&to) || !ret->format ||
	    !gdb_agent_strings(ret->format, ret->format_size, ret->n, &ret->strings))
		return false;
	for (size_t i = ret->n; i-- > 0;) {
		at = take_argument(&all, at, &ret->args[i]);
		if (!at)
			return false;
	}
	return at == all.n;
}
