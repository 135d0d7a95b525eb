/*
 * Expressions of DWARF, as what describes frames uses them: of signals, of PLT entries, of stacks that were realigned.
 * There are no jumps in those, so none are taken, and each ends. Reference: DWARF 5, 2.5 and 6.4.2.
 */
#include "sym/expression.h"

#include <dwarf.h>
#include <errno.h>

#include "sym/cursor.h"

enum { STACK_MAX = 16, SIZE_MAX_BYTES = 256 };

struct machine {
	struct sym_cursor at;
	const struct kymo_frame *frame;
	kymo_frame_read *read;
	void *context;
	uint64_t stack[STACK_MAX];
	size_t n;
	int err; /* why, where that is not -EBADMSG */
};

static bool push_value(struct machine *m, uint64_t value)
{
	if (m->n == STACK_MAX)
		return false;
	m->stack[m->n++] = value;
	return true;
}

static bool push_nth(struct machine *m, size_t below_top)
{
	return below_top < m->n && push_value(m, m->stack[m->n - 1 - below_top]);
}

static bool push_fixed(struct machine *m, unsigned int size, bool is_signed)
{
	uint64_t value;

	return sym_read_fixed(&m->at, size, is_signed, &value) && push_value(m, value);
}

static bool push_register(struct machine *m, uint64_t number)
{
	uint64_t offset;

	return number < KYMO_FRAME_REGISTERS && sym_read_sleb(&m->at, &offset) &&
	       push_value(m, m->frame->registers[number] + offset);
}

static bool push_memory(struct machine *m)
{
	if (!m->n)
		return false;
	if (m->read(m->context, m->stack[m->n - 1], &m->stack[m->n - 1]))
		return true;
	m->err = -EFAULT;
	return false;
}

static bool swap(struct machine *m)
{
	uint64_t top;

	if (m->n < 2)
		return false;
	top = m->stack[m->n - 1];
	m->stack[m->n - 1] = m->stack[m->n - 2];
	m->stack[m->n - 2] = top;
	return true;
}

static bool combine(struct machine *m, uint8_t code)
{
	uint64_t a, b, *ret;

	if (m->n < 2)
		return false;
	b = m->stack[--m->n];
	ret = &m->stack[m->n - 1];
	a = *ret;
	switch (code) {
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_or:
		*ret = a | b;
		return true;
	case DW_OP_xor:
		*ret = a ^ b;
		return true;
	case DW_OP_plus:
		*ret = a + b;
		return true;
	case DW_OP_minus:
		*ret = a - b;
		return true;
	case DW_OP_mul:
		*ret = a * b;
		return true;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_eq:
		*ret = a == b;
		return true;
	case DW_OP_ne:
		*ret = a != b;
		return true;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return true;
	case DW_OP_gt:
		*ret = (int64_t)a > (int64_t)b;
		return true;
	case DW_OP_le:
		*ret = (int64_t)a <= (int64_t)b;
		return true;
	case DW_OP_lt:
		*ret = (int64_t)a < (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool execute(struct machine *m, uint8_t code)
{
	uint64_t value;
	uint8_t index;

	if (code >= DW_OP_lit0 && code <= DW_OP_lit31)
		return push_value(m, code - DW_OP_lit0);
	if (code >= DW_OP_breg0 && code <= DW_OP_breg31)
		return push_register(m, code - DW_OP_breg0);
	switch (code) {
	case DW_OP_nop:
		return true;
	case DW_OP_bregx:
		return sym_read_uleb(&m->at, &value) && push_register(m, value);
	case DW_OP_const1u:
	case DW_OP_const1s:
		return push_fixed(m, 1, code == DW_OP_const1s);
	case DW_OP_const2u:
	case DW_OP_const2s:
		return push_fixed(m, 2, code == DW_OP_const2s);
	case DW_OP_const4u:
	case DW_OP_const4s:
		return push_fixed(m, 4, code == DW_OP_const4s);
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push_fixed(m, 8, false);
	case DW_OP_constu:
		return sym_read_uleb(&m->at, &value) && push_value(m, value);
	case DW_OP_consts:
		return sym_read_sleb(&m->at, &value) && push_value(m, value);
	case DW_OP_plus_uconst:
		return m->n && sym_read_uleb(&m->at, &value) && (m->stack[m->n - 1] += value, true);
	case DW_OP_dup:
		return push_nth(m, 0);
	case DW_OP_over:
		return push_nth(m, 1);
	case DW_OP_pick:
		return sym_read_u8(&m->at, &index) && push_nth(m, index);
	case DW_OP_drop:
		return m->n && m->n--;
	case DW_OP_swap:
		return swap(m);
	case DW_OP_deref:
		return push_memory(m);
	default:
		return combine(m, code);
	}
}

int sym_expression(struct sym_rules expression, const struct kymo_frame *frame, const uint64_t *initial,
		   kymo_frame_read *read, void *context, uint64_t *ret)
{
	struct machine m = { .at = { .at = expression.start, .end = expression.end },
			     .frame = frame,
			     .read = read,
			     .context = context,
			     .err = -EBADMSG };
	uint8_t code;

	if (expression.end - expression.start > SIZE_MAX_BYTES)
		return -EBADMSG;
	if (initial)
		push_value(&m, *initial);
	while (sym_read_u8(&m.at, &code))
		if (!execute(&m, code))
			return m.err;
	if (!m.n)
		return -EBADMSG;
	*ret = m.stack[m.n - 1];
	return 0;
}
