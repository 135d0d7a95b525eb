/*
 * Machine code of forms (wire/form.h).
 *
 * The last value is in rax. Values before it lie in the red zone of the pad's frame, each at an offset by its depth: so
 * each jump to an operation comes with the same state, and nothing has to be moved there. Of the program's registers
 * only those in the frame are changed, so that the code may run within a restartable sequence: a restart computes all
 * anew. That is why shifts do not use rcx.
 */
#include "arch/x86_64/form.h"

#include "arch/x86_64/context.h"
#include "arch/x86_64/form_float.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "arch/x86_64/reads.h"

/* A form while code is made of it. */
struct maker {
	struct code *c;
	const struct kymo_pad_env *env;
	const struct kymo_form *form;
	uint64_t bias, file;
	bool retval_is_known, loads_directly;
	struct label *fault;
	int64_t in_name;                       /* rax is that many bytes into the thread's name; -1: it is anything */
	unsigned int depth;                    /* values before the operation */
	uint8_t depths[KYMO_FORM_OPS_MAX + 1]; /* of those that are jumped to */
	bool is_target[KYMO_FORM_OPS_MAX + 1];
	size_t starts[KYMO_FORM_OPS_MAX + 1]; /* of operations, in the code */
	size_t holes[KYMO_FORM_OPS_MAX];      /* of jumps */
};

/* Where the value lies that has `depth` values before it, if it is not the last. */
static int32_t slot_of(unsigned int depth)
{
	return BELOW_VALUES - 8 * (int32_t)depth;
}

static void load_value(struct code *c, int64_t value)
{
	if (!value) {
		EMIT(c, 0x31, 0xc0); /* xor %eax,%eax */
	} else if (value == (int32_t)value) {
		EMIT(c, 0x48, 0xc7, 0xc0); /* mov $value,%rax */
		imm32(c, value);
	} else {
		movabs(c, RAX, (uint64_t)value);
	}
}

/* rax = the id of this thread, as records have it: the process's where the thread has no control block of glibc's. */
static void load_tid(struct maker *m)
{
	struct code *c = m->c;
	struct label of_thread = { .n = 0 }, of_process = { .n = 0 }, done = { .n = 0 };

	compare_byte(c, m->env->live, KYMO_PAD_LIVE);
	JE(c, &of_thread);
	compare_byte(c, m->env->live, KYMO_PAD_RSEQ);
	JNE(c, &of_process);
	EMIT(c, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%rax */
	EMIT(c, 0x64, 0x48, 0x3b, 0x04, 0x25, 0, 0, 0, 0);    /* cmp %fs:0,%rax */
	JNE(c, &of_process);
	bind(c, &of_thread);
	x86_load_tid(c, m->env, RAX);
	JMP(c, &done);
	bind(c, &of_process);
	x86_load_pid(c, m->env);
	bind(c, &done);
}

static void load_context(struct maker *m, int64_t which)
{
	switch (which) {
	case KYMO_FORM_PID:
		x86_load_inner_pid(m->c, m->env);
		break;
	case KYMO_FORM_TID:
		load_tid(m);
		break;
	default: /* CPU */
		x86_load_cpu(m->c);
		break;
	}
}

#define PRCTL 157
#define PR_GET_NAME 16
#define CLOCK_GETTIME 228
#define CLOCK_MONOTONIC 1

/* The answer to system call `number` of `first` and an address is at `at`; or a jump to the fault. */
static void ask(struct maker *m, uint32_t number, uint32_t first, int32_t at)
{
	struct code *c = m->c;
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	rsp_slot(c, 0x8d, R10, at);
	x86_load_live_page(c, m->env);
	byte(c, 0xb8); /* mov $first,%eax */
	imm32(c, first);
	x86_call_reader(c, m->env, guest.ask, number);
	EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
	JNE(c, m->fault);
}

static void load_answer(struct maker *m, int64_t question)
{
	struct code *c = m->c;

	if (question == KYMO_FORM_CLOCK) {
		ask(m, CLOCK_GETTIME, CLOCK_MONOTONIC, x86_clock_at(c));
		EMIT(c, 0x48, 0x69); /* imul $1000000000,seconds(%rsp),%rax */
		rsp_operand(c, RAX, x86_clock_at(c));
		imm32(c, 1000000000);
		rsp_slot(c, 0x03, RAX, x86_clock_at(c) + 8);
		return;
	}
	if (question == KYMO_FORM_NAME)
		ask(m, PRCTL, PR_GET_NAME, x86_name_at(c));
	rsp_slot(c, 0x8d, RAX, x86_name_at(c));
}

/* rax = the low 64 bits of a vector register, which pads leave alone */
static void load_vector(struct code *c, unsigned int number)
{
	byte(c, 0x66); /* movq %xmm,%rax */
	byte(c, number < 8 ? 0x48 : 0x4c);
	EMIT(c, 0x0f, 0x7e);
	byte(c, 0xc0 | (number & 7) << 3);
}

/* rax = the address of the text, which the code goes around */
static void load_text(struct code *c, const char *text)
{
	const unsigned int size = (unsigned int)strlen(text) + 1;

	byte(c, 0xeb); /* jmp */
	byte(c, size);
	for (unsigned int i = 0; i < size; i++)
		byte(c, (unsigned char)text[i]);
	EMIT(c, 0x48, 0x8d, 0x05); /* lea text(%rip),%rax */
	imm32(c, -(int64_t)size - 7);
}

static void push(struct maker *m, const struct kymo_form_op *op)
{
	struct code *c = m->c;

	if (m->depth)
		rsp_slot(c, 0x89, RAX, slot_of(m->depth - 1));
	switch (op->code) {
	case KYMO_FORM_VALUE:
		load_value(c, op->value);
		break;
	case KYMO_FORM_REGISTER:
		x86_load_saved(c, RAX, (unsigned int)op->value);
		break;
	case KYMO_FORM_STACK:
		rsp_slot(c, 0x8d, RAX, (int32_t)(FRAME + 8 * op->value));
		x86_check_readable(c, m->env, 8, m->fault);
		EMIT(c, 0x48, 0x8b, 0x00); /* mov (%rax),%rax */
		break;
	case KYMO_FORM_CONTEXT:
		load_context(m, op->value);
		break;
	case KYMO_FORM_ASK:
		load_answer(m, op->value);
		break;
	case KYMO_FORM_THREAD:
		x86_load_thread(c, m->env, m->fault);
		break;
	case KYMO_FORM_ADDRESS:
		movabs(c, RAX, m->bias + (uint64_t)op->value);
		break;
	case KYMO_FORM_FILE:
		movabs(c, RAX, m->file + (uint64_t)op->value);
		break;
	case KYMO_FORM_TEXT:
		load_text(c, m->form->text);
		break;
	case KYMO_FORM_VECTOR:
		load_vector(c, (unsigned int)op->value);
		break;
	case KYMO_FORM_PICK: /* the last one is in rax still */
		if (op->value)
			rsp_slot(c, 0x8b, RAX, slot_of(m->depth - 1 - (unsigned int)op->value));
		break;
	default: /* RETVAL */
		if (!m->retval_is_known)
			JMP(c, m->fault);
		else if (op->value)
			load_vector(c, 0);
		else
			x86_load_saved(c, RAX, RAX);
		break;
	}
}

static void emit_extend(struct code *c, const struct kymo_form_op *op)
{
	if (op->size == 1 && op->is_signed)
		EMIT(c, 0x48, 0x0f, 0xbe, 0xc0); /* movsbq %al,%rax */
	else if (op->size == 1)
		EMIT(c, 0x0f, 0xb6, 0xc0); /* movzbl %al,%eax */
	else if (op->size == 2 && op->is_signed)
		EMIT(c, 0x48, 0x0f, 0xbf, 0xc0); /* movswq %ax,%rax */
	else if (op->size == 2)
		EMIT(c, 0x0f, 0xb7, 0xc0); /* movzwl %ax,%eax */
	else if (op->is_signed)
		EMIT(c, 0x48, 0x98); /* cltq */
	else
		EMIT(c, 0x89, 0xc0); /* mov %eax,%eax */
}

/* rax = 1 where the flags have `condition` (of setcc), else 0 */
static void set(struct code *c, unsigned int condition)
{
	byte(c, 0x0f);
	byte(c, condition);
	EMIT(c, 0xc0, 0x0f, 0xb6, 0xc0); /* %al; movzbl %al,%eax */
}

#define SETB 0x92
#define SETE 0x94
#define SETNE 0x95
#define SETBE 0x96
#define SETL 0x9c
#define SETLE 0x9e

static void change(struct maker *m, const struct kymo_form_op *op)
{
	struct code *c = m->c;

	switch (op->code) {
	case KYMO_FORM_LOAD:
		if (m->loads_directly || (m->in_name >= 0 && m->in_name + op->size <= KYMO_FORM_NAME_SIZE))
			x86_load_bytes(c, op->size);
		else
			x86_emit_load(c, m->env, op->size, m->fault);
		break;
	case KYMO_FORM_EXTEND:
		emit_extend(c, op);
		break;
	case KYMO_FORM_NEGATE:
		EMIT(c, 0x48, 0xf7, 0xd8); /* neg %rax */
		break;
	case KYMO_FORM_COMPLEMENT:
		EMIT(c, 0x48, 0xf7, 0xd0); /* not %rax */
		break;
	case KYMO_FORM_TO_FLOAT:
	case KYMO_FORM_FROM_FLOAT:
	case KYMO_FORM_RESIZE_FLOAT:
		x86_change_float(c, op);
		break;
	default:                           /* TRUTH, NOT */
		EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
		set(c, op->code == KYMO_FORM_TRUTH ? SETNE : SETE);
		break;
	}
}

/* ---- two values ------------------------------------------------------------------------------ */

static unsigned int condition_of(const struct kymo_form_op *op)
{
	switch (op->code) {
	case KYMO_FORM_EQUAL:
		return SETE;
	case KYMO_FORM_DIFFERENT:
		return SETNE;
	case KYMO_FORM_LESS:
		return op->is_signed ? SETL : SETB;
	default:
		return op->is_signed ? SETLE : SETBE;
	}
}

static bool is_comparison(const struct kymo_form_op *op)
{
	return op->code >= KYMO_FORM_EQUAL && op->code <= KYMO_FORM_LESS_OR_EQUAL;
}

/* a at `slot`, b in rax and not 0 */
static void divide(struct code *c, const struct kymo_form_op *op, int32_t slot, struct label *fault)
{
	struct label done = { .n = 0 };
	const bool is_division = op->code == KYMO_FORM_DIVIDE;

	EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
	JE(c, fault);
	rsp_slot(c, 0x89, RAX, BELOW_DIVISOR);
	if (op->is_signed) {
		struct label usual = { .n = 0 };

		EMIT(c, 0x48, 0x83, 0xf8, 0xff); /* cmp $-1,%rax: idiv faults on the least number */
		rsp_slot(c, 0x8b, RAX, slot);
		JNE(c, &usual);
		if (is_division)
			EMIT(c, 0x48, 0xf7, 0xd8); /* neg %rax */
		else
			EMIT(c, 0x31, 0xd2); /* xor %edx,%edx */
		JMP(c, &done);
		bind(c, &usual);
		EMIT(c, 0x48, 0x99, 0x48, 0xf7); /* cqo; idivq BELOW_DIVISOR(%rsp) */
		rsp_operand(c, 7, BELOW_DIVISOR);
	} else {
		rsp_slot(c, 0x8b, RAX, slot);
		EMIT(c, 0x31, 0xd2, 0x48, 0xf7); /* xor %edx,%edx; divq BELOW_DIVISOR(%rsp) */
		rsp_operand(c, 6, BELOW_DIVISOR);
	}
	bind(c, &done);
	if (!is_division)
		EMIT(c, 0x48, 0x89, 0xd0); /* mov %rdx,%rax */
}

_Static_assert(BELOW_DIVISOR > BELOW_LOADED, "each has a place of its own");

/* a at `slot`, the count in rax: by 1, 2, 4 … bits, as its own bits say */
static void shift(struct code *c, const struct kymo_form_op *op, int32_t slot)
{
	const unsigned int which = op->code == KYMO_FORM_SHIFT_LEFT ? 0xe2 : op->is_signed ? 0xfa : 0xea;

	rsp_slot(c, 0x8b, RDX, slot);
	for (unsigned int bits = 1; bits < 8u * op->size; bits *= 2) {
		byte(c, 0xa8); /* test $bits,%al */
		byte(c, bits);
		EMIT(c, 0x74, 0x04, 0x48, 0xc1); /* je 1f; shl, shr or sar $bits,%rdx; 1: */
		byte(c, which);
		byte(c, bits);
	}
	EMIT(c, 0x48, 0x89, 0xd0); /* mov %rdx,%rax */
}

static void swap(struct maker *m)
{
	const int32_t slot = slot_of(m->depth - 2);

	rsp_slot(m->c, 0x8b, RDX, slot);
	rsp_slot(m->c, 0x89, RAX, slot);
	EMIT(m->c, 0x48, 0x89, 0xd0); /* mov %rdx,%rax */
}

static void emit_binary(struct maker *m, const struct kymo_form_op *op)
{
	const int32_t slot = slot_of(m->depth - 2);
	struct code *c = m->c;

	switch (op->code) {
	case KYMO_FORM_ADD:
		rsp_slot(c, 0x03, RAX, slot);
		break;
	case KYMO_FORM_AND:
		rsp_slot(c, 0x23, RAX, slot);
		break;
	case KYMO_FORM_OR:
		rsp_slot(c, 0x0b, RAX, slot);
		break;
	case KYMO_FORM_XOR:
		rsp_slot(c, 0x33, RAX, slot);
		break;
	case KYMO_FORM_SUBTRACT:
		rsp_slot(c, 0x8b, RDX, slot);
		EMIT(c, 0x48, 0x29, 0xc2, 0x48, 0x89, 0xd0); /* sub %rax,%rdx; mov %rdx,%rax */
		break;
	case KYMO_FORM_MULTIPLY:
		EMIT(c, 0x48, 0x0f, 0xaf); /* imul slot(%rsp),%rax */
		rsp_operand(c, RAX, slot);
		break;
	case KYMO_FORM_SHIFT_LEFT:
	case KYMO_FORM_SHIFT_RIGHT:
		shift(c, op, slot);
		break;
	case KYMO_FORM_DIVIDE:
	case KYMO_FORM_REMAINDER:
		divide(c, op, slot, m->fault);
		break;
	case KYMO_FORM_FLOAT_ADD ... KYMO_FORM_FLOAT_LESS_OR_EQUAL:
		x86_join_floats(c, op, slot);
		break;
	case KYMO_FORM_DROP:
		rsp_slot(c, 0x8b, RAX, slot);
		break;
	case KYMO_FORM_STORE:
		x86_emit_store(c, m->env, op->size, slot, m->fault);
		break;
	case KYMO_FORM_WANT: /* the address is in rax then, and the number of bytes where that was: at BELOW_WANTED */
		swap(m);
		break;
	default:                              /* comparisons */
		rsp_slot(c, 0x39, RAX, slot); /* cmp %rax,slot(%rsp) */
		set(c, condition_of(op));
		break;
	}
}

/* Operation `i` is a value, and the next one takes it at once: both in one, if that can have it in itself. */
static bool join_value(struct maker *m, uint32_t i)
{
	const struct kymo_form_op *value = &m->form->ops[i], *op = value + 1;
	struct code *c = m->c;

	if (i + 1 == m->form->n || m->is_target[i + 1] || value->value != (int32_t)value->value || !m->depth)
		return false;
	if (op->code == KYMO_FORM_ADD)
		EMIT(c, 0x48, 0x05); /* add $value,%rax */
	else if (op->code == KYMO_FORM_SUBTRACT)
		EMIT(c, 0x48, 0x2d);
	else if (op->code == KYMO_FORM_AND)
		EMIT(c, 0x48, 0x25);
	else if (op->code == KYMO_FORM_OR)
		EMIT(c, 0x48, 0x0d);
	else if (op->code == KYMO_FORM_XOR)
		EMIT(c, 0x48, 0x35);
	else if (is_comparison(op))
		EMIT(c, 0x48, 0x3d); /* cmp $value,%rax */
	else
		return false;
	imm32(c, value->value);
	if (is_comparison(op))
		set(c, condition_of(op));
	return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool can_be_made(const struct kymo_form *form)
{
	return kymo_form_check(form, KYMO_FETCH_REGISTERS, KYMO_FETCH_STACK_MAX) && !kymo_form_has_words(form);
}

bool x86_form_is_valid(const struct kymo_form *form)
{
	return can_be_made(form) && !kymo_form_has(form, KYMO_FORM_STORE, NULL);
}

bool x86_store_is_valid(const struct kymo_form *form)
{
	return can_be_made(form) && kymo_form_has(form, KYMO_FORM_STORE, NULL);
}

static void jump(struct maker *m, uint32_t i)
{
	const struct kymo_form_op *op = &m->form->ops[i];
	struct code *c = m->c;

	if (op->code == KYMO_FORM_JUMP) {
		EMIT(c, 0xe9);
	} else {
		EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
		m->depth--;
		if (m->depth)
			rsp_slot(c, 0x8b, RAX, slot_of(m->depth - 1));
		EMIT(c, 0x0f, 0x84); /* je */
	}
	m->holes[i] = c->n;
	imm32(c, 0);
	m->depths[op->value] = (uint8_t)m->depth;
}

/* Operation `i` and what it was joined with have been made: where rax is now. */
static void follow_name(struct maker *m, uint32_t i, uint32_t next)
{
	const struct kymo_form_op *op = &m->form->ops[i];

	if (op->code == KYMO_FORM_ASK && op->value != KYMO_FORM_CLOCK)
		m->in_name = 0;
	else if (m->in_name >= 0 && next == i + 2 && op[1].code == KYMO_FORM_ADD && op->value >= 0)
		m->in_name += op->value;
	else
		m->in_name = -1;
}

static void close_jumps(struct maker *m)
{
	for (uint32_t i = 0; i < m->form->n; i++) {
		const size_t hole = m->holes[i];
		int32_t distance;

		if (!kymo_form_is_jump(&m->form->ops[i]) || hole + 4 > m->c->size)
			continue;
		distance = (int32_t)(m->starts[m->form->ops[i].value] - (hole + 4));
		memcpy(m->c->out + hole, &distance, 4);
	}
}

void x86_emit_form(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		   const struct kymo_form *form, bool retval_is_known, struct label *fault)
{
	struct maker m = {
		.c = c,
		.env = env,
		.form = form,
		.bias = site->bias,
		.file = site->file,
		.retval_is_known = retval_is_known,
		.loads_directly = site->loads_directly,
		.fault = fault,
		.in_name = -1,
	};

	for (uint32_t i = 0; i < form->n; i++)
		if (kymo_form_is_jump(&form->ops[i]))
			m.is_target[form->ops[i].value] = true;
	for (uint32_t i = 0; i < form->n; i++) {
		const struct kymo_form_op *op = &form->ops[i];
		const uint32_t first = i;

		m.starts[i] = c->n;
		if (m.is_target[i]) {
			m.depth = m.depths[i];
			m.in_name = -1;
		}
		if (kymo_form_is_jump(op)) {
			jump(&m, i);
		} else if (op->code == KYMO_FORM_VALUE && join_value(&m, i)) {
			m.starts[++i] = c->n;
		} else if (op->code == KYMO_FORM_SWAP) {
			swap(&m);
		} else if (op->code <= KYMO_FORM_PICK) {
			push(&m, op);
			m.depth++;
		} else if (op->code <= KYMO_FORM_NOT) {
			change(&m, op);
		} else {
			emit_binary(&m, op);
			m.depth--;
		}
		follow_name(&m, first, i + 1);
	}
	m.starts[form->n] = c->n;
	close_jumps(&m);
}
