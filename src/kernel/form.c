/*
 * Forms are programs for a machine with a stack, whose jumps lead forward only, as those of BPF do here. Each value has
 * a slot of the frame by its depth. An operation takes its operands into r1 and r2, and stores its result: the verifier
 * keeps what it knows of slots apart from paths, and the kernel's compiler keeps them in the cache.
 *
 * kymo_form_run() says what each operation means, and the tests compare both.
 */
#include "kernel/form.h"

#include "kernel/code.h"
#include "wire/event.h"

struct machine {
	const struct kymo_kernel_form *form;
	int stack, ids;
	unsigned int depth;                    /* values before the operation */
	uint8_t depths[KYMO_FORM_OPS_MAX + 1]; /* of operations that are jumped to */
	int starts[KYMO_FORM_OPS_MAX + 1];     /* instructions */
	struct kernel_label *fault;
};

/* ---- what there is no code for ---------------------------------------------------------------- */

static const char *op_refusal(const struct kymo_form_op *op)
{
	if (kymo_form_is_of_floats(op->code))
		return "floating-point numbers";
	switch (op->code) {
	case KYMO_FORM_VECTOR:
		return "vector registers";
	case KYMO_FORM_RETVAL:
		return op->value ? "vector registers" : NULL;
	case KYMO_FORM_FILE:
		return "data by its place in the file";
	case KYMO_FORM_THREAD:
		return "a thread-local variable";
	case KYMO_FORM_TEXT:
		return "a text";
	case KYMO_FORM_FUNC:
	case KYMO_FORM_PROBE:
		return "func and probe";
	case KYMO_FORM_ASK:
		return op->value == KYMO_FORM_CLOCK ? NULL : "the name of the thread";
	case KYMO_FORM_STORE:
		return "writes of memory";
	default:
		return NULL;
	}
}

const char *kymo_kernel_form_refusal(const struct kymo_form *form)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < form->n && !why; i++)
		why = op_refusal(&form->ops[i]);
	return why;
}

/* ---- values ------------------------------------------------------------------------------------ */

static int slot(const struct machine *m, unsigned int depth)
{
	return m->stack + 8 * (int)depth;
}

/* `reg` = the value that has `above` others on top of it. */
static void get(struct kernel_code *c, const struct machine *m, uint8_t reg, unsigned int above)
{
	emit(c, BPF_LDX_MEM(BPF_DW, reg, FP, slot(m, m->depth - 1 - above)));
}

/* The value with `depth` others below it = `reg`. */
static void put(struct kernel_code *c, const struct machine *m, uint8_t reg, unsigned int depth)
{
	emit(c, BPF_STX_MEM(BPF_DW, FP, reg, slot(m, depth)));
}

/* The `size` bytes at the address in r3 to the slot at `depth`, with zeros before them. */
static void load(struct kernel_code *c, const struct machine *m, unsigned int depth, unsigned int size)
{
	emit(c, BPF_ST_MEM(BPF_DW, FP, slot(m, depth), 0));
	stack_address(c, R1, slot(m, depth));
	emit(c, BPF_MOV64_IMM(R2, (int32_t)size));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_probe_read_user));
	jump_if(c, BPF_JNE, R0, 0, m->fault);
}

/* What the operation `i` finds at its place. */
static void push_place(struct kernel_code *c, const struct machine *m, uint32_t i)
{
	const struct kymo_kernel_place *place = &m->form->places[i];

	if (place->source == KYMO_KERNEL_UNKNOWN) { /* the verifier wants a way to what follows */
		emit(c, BPF_MOV64_IMM(R3, 0));
		jump_if(c, BPF_JEQ, R3, 0, m->fault);
		put(c, m, R3, m->depth);
		return;
	}
	emit(c, BPF_LDX_MEM(BPF_DW, R3, R6, place->at));
	if (place->value)
		emit(c, BPF_ALU64_IMM(BPF_ADD, R3, (int32_t)place->value));
	if (place->source == KYMO_KERNEL_MEMORY)
		load(c, m, m->depth, 8);
	else
		put(c, m, R3, m->depth);
}

static void push_context(struct kernel_code *c, const struct machine *m, int64_t what)
{
	if (what == KYMO_FORM_CPU)
		emit(c, BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id));
	else
		emit(c, BPF_LDX_MEM(BPF_W, R0, FP, m->ids + (what == KYMO_FORM_PID ? 4 : 0)));
	put(c, m, R0, m->depth);
}

/* The file is loaded as far from where it is linked as the site is, which the cookie knows. */
static void push_address(struct kernel_code *c, const struct machine *m, uint32_t i)
{
	emit(c, BPF_MOV64_REG(R1, R6));
	emit(c, BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie));
	emit(c, BPF_ALU64_IMM(BPF_RSH, R0, KYMO_EVENT_ID_BITS));
	emit(c, BPF_LDX_MEM(BPF_DW, R1, R6, m->form->places[i].at));
	emit(c, BPF_ALU64_REG(BPF_SUB, R1, R0));
	emit(c, BPF_LD_IMM64(R2, m->form->form->ops[i].value));
	emit(c, BPF_ALU64_REG(BPF_ADD, R1, R2));
	put(c, m, R1, m->depth);
}

static void push(struct kernel_code *c, const struct machine *m, uint32_t i)
{
	const struct kymo_form_op *op = &m->form->form->ops[i];

	switch (op->code) {
	case KYMO_FORM_VALUE:
		emit(c, BPF_LD_IMM64(R1, op->value));
		put(c, m, R1, m->depth);
		break;
	case KYMO_FORM_ADDRESS:
		push_address(c, m, i);
		break;
	case KYMO_FORM_PICK:
		get(c, m, R1, (unsigned int)op->value);
		put(c, m, R1, m->depth);
		break;
	case KYMO_FORM_CONTEXT:
		push_context(c, m, op->value);
		break;
	case KYMO_FORM_ASK:
		emit(c, BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns));
		put(c, m, R0, m->depth);
		break;
	default:
		push_place(c, m, i);
	}
}

/* ---- operations -------------------------------------------------------------------------------- */

/* r1 = 1 if `op` holds for r1 and r2, or for r1 and `imm`; else 0. */
static void compare(struct kernel_code *c, uint8_t op, bool with_r2)
{
	emit(c, BPF_MOV64_IMM(R3, 1));
	emit(c, with_r2 ? BPF_JMP_REG(op, R1, R2, 1) : BPF_JMP_IMM(op, R1, 0, 1));
	emit(c, BPF_MOV64_IMM(R3, 0));
	emit(c, BPF_MOV64_REG(R1, R3));
}

static void change(struct kernel_code *c, const struct machine *m, const struct kymo_form_op *op)
{
	const unsigned int depth = m->depth - 1;

	if (op->code == KYMO_FORM_LOAD) {
		get(c, m, R3, 0);
		load(c, m, depth, op->size);
		return;
	}
	get(c, m, R1, 0);
	switch (op->code) {
	case KYMO_FORM_EXTEND:
		emit(c, BPF_ALU64_IMM(BPF_LSH, R1, 64 - 8 * op->size));
		emit(c, BPF_ALU64_IMM(op->is_signed ? BPF_ARSH : BPF_RSH, R1, 64 - 8 * op->size));
		break;
	case KYMO_FORM_NEGATE:
		emit(c, BPF_ALU64_IMM(BPF_NEG, R1, 0));
		break;
	case KYMO_FORM_COMPLEMENT:
		emit(c, BPF_ALU64_IMM(BPF_XOR, R1, -1));
		break;
	default:
		compare(c, op->code == KYMO_FORM_TRUTH ? BPF_JNE : BPF_JEQ, false);
	}
	put(c, m, R1, depth);
}

/* `reg` = its amount, and `sign` = -1 if it was less than 0, else 0. */
static void take_sign(struct kernel_code *c, uint8_t reg, uint8_t sign)
{
	emit(c, BPF_MOV64_REG(sign, reg));
	emit(c, BPF_ALU64_IMM(BPF_ARSH, sign, 63));
	emit(c, BPF_ALU64_REG(BPF_XOR, reg, sign));
	emit(c, BPF_ALU64_REG(BPF_SUB, reg, sign));
}

/* r1 = r1 divided by r2, or what is left over. BPF divides numbers without a sign only, before Linux 6.6. */
static void divide(struct kernel_code *c, const struct machine *m, const struct kymo_form_op *op)
{
	const bool is_division = op->code == KYMO_FORM_DIVIDE;

	jump_if(c, BPF_JEQ, R2, 0, m->fault);
	if (op->is_signed) {
		take_sign(c, R1, R3);
		take_sign(c, R2, R4);
		if (is_division)
			emit(c, BPF_ALU64_REG(BPF_XOR, R3, R4));
	}
	emit(c, BPF_ALU64_REG(is_division ? BPF_DIV : BPF_MOD, R1, R2));
	if (op->is_signed) {
		emit(c, BPF_ALU64_REG(BPF_XOR, R1, R3));
		emit(c, BPF_ALU64_REG(BPF_SUB, R1, R3));
	}
}

static void shift(struct kernel_code *c, const struct kymo_form_op *op)
{
	const uint8_t right = op->is_signed ? BPF_ARSH : BPF_RSH;

	emit(c, BPF_ALU64_IMM(BPF_AND, R2, 8 * op->size - 1));
	emit(c, BPF_ALU64_REG(op->code == KYMO_FORM_SHIFT_LEFT ? BPF_LSH : right, R1, R2));
}

static void join(struct kernel_code *c, const struct machine *m, const struct kymo_form_op *op)
{
	static const uint8_t plain[KYMO_FORM_N_CODES] = {
		[KYMO_FORM_ADD] = BPF_ADD, [KYMO_FORM_SUBTRACT] = BPF_SUB, [KYMO_FORM_MULTIPLY] = BPF_MUL,
		[KYMO_FORM_AND] = BPF_AND, [KYMO_FORM_OR] = BPF_OR,        [KYMO_FORM_XOR] = BPF_XOR,
	};

	get(c, m, R1, 1);
	get(c, m, R2, 0);
	switch (op->code) {
	case KYMO_FORM_DIVIDE:
	case KYMO_FORM_REMAINDER:
		divide(c, m, op);
		break;
	case KYMO_FORM_SHIFT_LEFT:
	case KYMO_FORM_SHIFT_RIGHT:
		shift(c, op);
		break;
	case KYMO_FORM_EQUAL:
		compare(c, BPF_JEQ, true);
		break;
	case KYMO_FORM_DIFFERENT:
		compare(c, BPF_JNE, true);
		break;
	case KYMO_FORM_LESS:
		compare(c, op->is_signed ? BPF_JSLT : BPF_JLT, true);
		break;
	case KYMO_FORM_LESS_OR_EQUAL:
		compare(c, op->is_signed ? BPF_JSLE : BPF_JLE, true);
		break;
	case KYMO_FORM_DROP: /* the first one is where it was */
	case KYMO_FORM_WANT: /* and the second one */
		break;
	default:
		emit(c, BPF_ALU64_REG(plain[op->code], R1, R2));
	}
	put(c, m, R1, m->depth - 2);
}

/* ---- the form ---------------------------------------------------------------------------------- */

struct pending {
	int at; /* the jump */
	int64_t target;
};

static void emit_op(struct kernel_code *c, struct machine *m, uint32_t i, struct pending *pending, unsigned int *n)
{
	const struct kymo_form_op *op = &m->form->form->ops[i];

	if (kymo_form_is_jump(op)) {
		const bool is_conditional = op->code == KYMO_FORM_JUMP_IF_ZERO;

		if (is_conditional)
			get(c, m, R1, 0);
		m->depth -= is_conditional;
		m->depths[op->value] = (uint8_t)m->depth;
		pending[(*n)++] = (struct pending){ c->n, op->value };
		emit(c, is_conditional ? BPF_JMP_IMM(BPF_JEQ, R1, 0, 0) : BPF_JMP_A(0));
	} else if (op->code <= KYMO_FORM_PICK) {
		push(c, m, i);
		m->depth++;
	} else if (op->code == KYMO_FORM_SWAP) {
		get(c, m, R1, 1);
		get(c, m, R2, 0);
		put(c, m, R2, m->depth - 2);
		put(c, m, R1, m->depth - 1);
	} else if (op->code <= KYMO_FORM_NOT) {
		change(c, m, op);
	} else {
		join(c, m, op);
		m->depth--;
	}
}

void kernel_form_emit(struct kernel_code *c, const struct kymo_kernel_form *form, int stack, int ids,
		      struct kernel_label *fault)
{
	struct machine m = { .form = form, .stack = stack, .ids = ids, .fault = fault };
	struct pending pending[KYMO_FORM_OPS_MAX];
	const struct kymo_form_op *ops = form->form->ops;
	const uint32_t n = form->form->n;
	unsigned int n_pending = 0;

	for (uint32_t i = 0; i < n; i++) {
		m.starts[i] = c->n;
		if (i && ops[i - 1].code == KYMO_FORM_JUMP) /* only jumps lead here */
			m.depth = m.depths[i];
		emit_op(c, &m, i, pending, &n_pending);
	}
	m.starts[n] = c->n;
	for (unsigned int i = 0; i < n_pending && !c->err; i++)
		c->insns[pending[i].at].off = (int16_t)(m.starts[pending[i].target] - pending[i].at - 1);
	m.depth = 1;
	get(c, &m, R0, 0);
}
