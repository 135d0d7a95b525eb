#include "gdb/agent.h"

#include <limits.h>
#include <string.h>

#include "gdb/agent_code.h"

enum {
	DEPTH = 100,
	BITS = 64,
};

struct machine {
	const uint8_t *code;
	size_t size, at;
	const struct gdb_agent_target *target;
	uint64_t stack[DEPTH];
	size_t n;
	unsigned int *left;
};

/* ---- operands and the stack ------------------------------------------------------------------ */

/* The most significant byte first, whatever the target has. */
static bool fetch(struct machine *machine, size_t size, uint64_t *ret)
{
	uint64_t value = 0;

	if (machine->size - machine->at < size)
		return false;
	for (size_t i = 0; i < size; i++)
		value = value << 8 | machine->code[machine->at++];
	*ret = value;
	return true;
}

static bool push(struct machine *machine, uint64_t value)
{
	if (machine->n == DEPTH)
		return false;
	machine->stack[machine->n++] = value;
	return true;
}

static bool pop(struct machine *machine, uint64_t *ret)
{
	if (!machine->n)
		return false;
	*ret = machine->stack[--machine->n];
	return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static uint64_t shift_right(uint64_t a, uint64_t b, bool is_signed)
{
	const bool is_negative = is_signed && a >> (BITS - 1);

	if (b >= BITS)
		return is_negative ? UINT64_MAX : 0;
	return a >> b | (is_negative && b ? ~(UINT64_MAX >> b) : 0);
}

static bool divide(enum gdb_agent_op op, uint64_t a, uint64_t b, uint64_t *ret)
{
	const int64_t x = (int64_t)a, y = (int64_t)b;

	if (!b)
		return false;
	if (op == AGENT_DIV_UNSIGNED || op == AGENT_REM_UNSIGNED)
		*ret = op == AGENT_DIV_UNSIGNED ? a / b : a % b;
	else if (y == -1) /* the one division that does not fit */
		*ret = op == AGENT_DIV_SIGNED ? -a : 0;
	else
		*ret = (uint64_t)(op == AGENT_DIV_SIGNED ? x / y : x % y);
	return true;
}

static bool calculate(enum gdb_agent_op op, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (op) {
	case AGENT_ADD:
		*ret = a + b;
		return true;
	case AGENT_SUB:
		*ret = a - b;
		return true;
	case AGENT_MUL:
		*ret = a * b;
		return true;
	case AGENT_DIV_SIGNED:
	case AGENT_DIV_UNSIGNED:
	case AGENT_REM_SIGNED:
	case AGENT_REM_UNSIGNED:
		return divide(op, a, b, ret);
	case AGENT_LSH:
		*ret = b < BITS ? a << b : 0;
		return true;
	case AGENT_RSH_SIGNED:
	case AGENT_RSH_UNSIGNED:
		*ret = shift_right(a, b, op == AGENT_RSH_SIGNED);
		return true;
	case AGENT_BIT_AND:
		*ret = a & b;
		return true;
	case AGENT_BIT_OR:
		*ret = a | b;
		return true;
	case AGENT_BIT_XOR:
		*ret = a ^ b;
		return true;
	case AGENT_EQUAL:
		*ret = a == b;
		return true;
	case AGENT_LESS_SIGNED:
		*ret = (int64_t)a < (int64_t)b;
		return true;
	case AGENT_LESS_UNSIGNED:
		*ret = a < b;
		return true;
	default:
		return false;
	}
}

static bool two_operands(struct machine *machine, enum gdb_agent_op op)
{
	uint64_t a, b, value;

	return pop(machine, &b) && pop(machine, &a) && calculate(op, a, b, &value) && push(machine, value);
}

static uint64_t extend_value(uint64_t value, uint64_t bits, bool is_signed)
{
	if (!bits || bits >= BITS)
		return value;
	value &= UINT64_MAX >> (BITS - bits);
	return is_signed && value >> (bits - 1) ? value | UINT64_MAX << bits : value;
}

/* Instructions that have a number of bits after them, or none. */
static bool one_operand(struct machine *machine, enum gdb_agent_op op)
{
	uint64_t value, bits = 0;

	if (op != AGENT_LOG_NOT && op != AGENT_BIT_NOT && !fetch(machine, 1, &bits))
		return false;
	if (!pop(machine, &value))
		return false;
	if (op == AGENT_LOG_NOT)
		return push(machine, !value);
	return push(machine, op == AGENT_BIT_NOT ? ~value : extend_value(value, bits, op == AGENT_EXT));
}

static bool refer(struct machine *machine, size_t size)
{
	uint64_t address, value = 0; /* its first bytes are the least significant ones */

	*machine->left -= *machine->left < GDB_AGENT_READ_STEPS ? *machine->left : GDB_AGENT_READ_STEPS;
	return pop(machine, &address) && machine->target->read_memory(machine->target->data, address, &value, size) &&
	       push(machine, value);
}

static bool jump(struct machine *machine, bool is_conditional)
{
	uint64_t to, value = 1;

	if (!fetch(machine, 2, &to) || (is_conditional && !pop(machine, &value)) || to >= machine->size)
		return false;
	if (value)
		machine->at = (size_t)to;
	return true;
}

static bool pick_value(struct machine *machine)
{
	uint64_t n;

	return fetch(machine, 1, &n) && n < machine->n && push(machine, machine->stack[machine->n - 1 - n]);
}

/* a b becomes b a; a b c becomes c a b. */
static bool rotate(struct machine *machine, size_t n)
{
	uint64_t *top, last;

	if (machine->n < n)
		return false;
	top = machine->stack + machine->n - 1;
	last = *top;
	memmove(top - n + 2, top - n + 1, (n - 1) * sizeof(*top));
	top[1 - (ptrdiff_t)n] = last;
	return true;
}

static bool constant(struct machine *machine, size_t size)
{
	uint64_t value;

	return fetch(machine, size, &value) && push(machine, value);
}

static bool get_register(struct machine *machine)
{
	uint64_t number, value;

	return fetch(machine, 2, &number) &&
	       machine->target->read_register(machine->target->data, (unsigned int)number, &value) &&
	       push(machine, value);
}

/* A function and a channel are for styles of printing that gdb does not use here. */
static bool print(struct machine *machine)
{
	uint64_t n, size, ignored, args[DEPTH];
	const char *format;

	if (!machine->target->print || !fetch(machine, 1, &n) || !fetch(machine, 2, &size) || !size ||
	    machine->size - machine->at < size || n > DEPTH || !pop(machine, &ignored) || !pop(machine, &ignored))
		return false;
	format = (const char *)machine->code + machine->at;
	machine->at += size;
	for (size_t i = 0; i < n; i++)
		if (!pop(machine, &args[i]))
			return false;
	return !format[size - 1] && machine->target->print(machine->target->data, format, size - 1, args, n);
}

/* ---- tracepoints ----------------------------------------------------------------------------- */

static void take_steps(struct machine *machine, uint64_t n)
{
	*machine->left -= *machine->left < n ? *machine->left : (unsigned int)n;
}

static bool trace(struct machine *machine, uint64_t address, uint64_t size)
{
	take_steps(machine, GDB_AGENT_READ_STEPS + size / GDB_AGENT_STEP_BYTES);
	return machine->target->trace && *machine->left && machine->target->trace(machine->target->data, address, size);
}

/* The address stays on the stack. */
static bool trace_at_top(struct machine *machine, size_t operand)
{
	uint64_t size;

	return fetch(machine, operand, &size) && machine->n && trace(machine, machine->stack[machine->n - 1], size);
}

static bool trace_popped(struct machine *machine)
{
	uint64_t address, size;

	return pop(machine, &size) && pop(machine, &address) && trace(machine, address, size);
}

/* Up to a zero, which is collected too. What cannot be read ends it. */
static bool trace_string(struct machine *machine)
{
	uint64_t address, limit, n = 0;
	uint8_t byte = 1;

	if (!pop(machine, &limit) || !pop(machine, &address))
		return false;
	while (n < limit && byte && *machine->left &&
	       machine->target->read_memory(machine->target->data, address + n, &byte, 1)) {
		take_steps(machine, 1);
		n++;
	}
	return trace(machine, address, n);
}

static bool use_variable(struct machine *machine, enum gdb_agent_op op)
{
	const struct gdb_agent_target *target = machine->target;
	uint64_t number, value;

	if (!fetch(machine, 2, &number))
		return false;
	switch (op) {
	case AGENT_GET_VARIABLE:
		return target->get_variable && target->get_variable(target->data, (unsigned int)number, &value) &&
		       push(machine, value);
	case AGENT_SET_VARIABLE: /* the value stays on the stack */
		return target->set_variable && machine->n &&
		       target->set_variable(target->data, (unsigned int)number, machine->stack[machine->n - 1]);
	default:
		return target->trace_variable && target->trace_variable(target->data, (unsigned int)number);
	}
}

static bool execute_for_trace(struct machine *machine, enum gdb_agent_op op)
{
	switch (op) {
	case AGENT_TRACE:
		return trace_popped(machine);
	case AGENT_TRACE_QUICK:
		return trace_at_top(machine, 1);
	case AGENT_TRACE16:
		return trace_at_top(machine, 2);
	case AGENT_TRACE_STRING:
		return trace_string(machine);
	case AGENT_GET_VARIABLE:
	case AGENT_SET_VARIABLE:
	case AGENT_TRACE_VARIABLE:
		return use_variable(machine, op);
	default:
		return two_operands(machine, op);
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool execute(struct machine *machine, enum gdb_agent_op op)
{
	uint64_t ignored;

	switch (op) {
	case AGENT_LOG_NOT:
	case AGENT_BIT_NOT:
	case AGENT_EXT:
	case AGENT_ZERO_EXT:
		return one_operand(machine, op);
	case AGENT_REF8:
	case AGENT_REF16:
	case AGENT_REF32:
	case AGENT_REF64:
		return refer(machine, 1u << (op - AGENT_REF8));
	case AGENT_IF_GOTO:
	case AGENT_GOTO:
		return jump(machine, op == AGENT_IF_GOTO);
	case AGENT_CONST8:
	case AGENT_CONST16:
	case AGENT_CONST32:
	case AGENT_CONST64:
		return constant(machine, 1u << (op - AGENT_CONST8));
	case AGENT_REG:
		return get_register(machine);
	case AGENT_DUP:
		return machine->n && push(machine, machine->stack[machine->n - 1]);
	case AGENT_POP:
		return pop(machine, &ignored);
	case AGENT_SWAP:
		return rotate(machine, 2);
	case AGENT_PICK:
		return pick_value(machine);
	case AGENT_ROT:
		return rotate(machine, 3);
	case AGENT_PRINTF:
		return print(machine);
	default:
		return execute_for_trace(machine, op);
	}
}

/* Up to its end. */
static bool run(struct machine *machine)
{
	uint64_t op;

	while (*machine->left && fetch(machine, 1, &op)) {
		--*machine->left;
		if (op == AGENT_END)
			return true;
		if (!execute(machine, (enum gdb_agent_op)op))
			return false;
	}
	return false;
}

bool gdb_agent_evaluate(const uint8_t *code, size_t size, const struct gdb_agent_target *target, unsigned int *left,
			uint64_t *ret)
{
	struct machine machine = { .code = code, .size = size, .target = target, .left = left };

	return run(&machine) && pop(&machine, ret);
}

bool gdb_agent_execute(const uint8_t *code, size_t size, const struct gdb_agent_target *target, unsigned int *left)
{
	return run(&(struct machine){ .code = code, .size = size, .target = target, .left = left });
}
