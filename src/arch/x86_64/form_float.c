/*
 * Floating-point numbers in forms, by SSE. Each operation saves xmm0 and MXCSR and puts them back: no exception is
 * unmasked meanwhile, and numbers are rounded to the nearest. The program does not find the flags of an exception that
 * is not its own. Instructions without VEX leave the upper parts of the register alone.
 *
 * A restartable sequence could be restarted with xmm0 changed, so events with such operations compute their values
 * before it (reads.c), with a lowered stack pointer: what is below that is free.
 */
#include "arch/x86_64/form_float.h"

#include "arch/x86_64/code.h"
#include "wire/form.h"

#define MXCSR_DEFAULT 0x1f80 /* every exception is masked; rounding to the nearest */
#define TWO_TO_63 UINT64_C(0x43e0000000000000)
#define TWO_TO_63_SINGLE 0x5f000000

/* From the stack pointer as it is. */
enum { SAVED_VECTOR = -16, SAVED_MXCSR = -20, OUR_MXCSR = -24, OPERAND = -32, CONSTANT = -40 };

static int32_t below(const struct code *c, int32_t at)
{
	return at - c->lowered;
}

static void begin_float(struct code *c)
{
	rsp_slot(c, 0x89, RAX, below(c, OPERAND));
	EMIT(c, 0x0f, 0x11); /* movups %xmm0,vector(%rsp) */
	rsp_operand(c, 0, below(c, SAVED_VECTOR));
	EMIT(c, 0x0f, 0xae); /* stmxcsr */
	rsp_operand(c, 3, below(c, SAVED_MXCSR));
	EMIT(c, 0xc7); /* movl $MXCSR_DEFAULT */
	rsp_operand(c, 0, below(c, OUR_MXCSR));
	imm32(c, MXCSR_DEFAULT);
	EMIT(c, 0x0f, 0xae); /* ldmxcsr */
	rsp_operand(c, 2, below(c, OUR_MXCSR));
}

static void end_float(struct code *c)
{
	EMIT(c, 0x0f, 0xae); /* ldmxcsr */
	rsp_operand(c, 2, below(c, SAVED_MXCSR));
	EMIT(c, 0x0f, 0x10); /* movups vector(%rsp),%xmm0 */
	rsp_operand(c, 0, below(c, SAVED_VECTOR));
}

/* An instruction of one number of `size` in memory and xmm0: 0x10 loads it, 0x58 adds, ... */
static void scalar(struct code *c, unsigned int size, unsigned int opcode, int32_t disp)
{
	byte(c, size == 4 ? 0xf3 : 0xf2);
	byte(c, 0x0f);
	byte(c, opcode);
	rsp_operand(c, 0, disp);
}

/* rax = the number in xmm0, with zeros before it */
static void take_float(struct code *c, unsigned int size)
{
	byte(c, 0x66); /* movd, movq %xmm0,%rax */
	if (size == 8)
		byte(c, 0x48);
	EMIT(c, 0x0f, 0x7e, 0xc0);
}

/* xmm0 = the signed number in rax */
static void convert_signed(struct code *c, unsigned int size)
{
	byte(c, size == 4 ? 0xf3 : 0xf2); /* cvtsi2ss, cvtsi2sd %rax,%xmm0 */
	EMIT(c, 0x48, 0x0f, 0x2a, 0xc0);
}

/* Of one with the highest bit half is converted, and doubled; the lowest bit decides how that is rounded. */
static void convert_unsigned(struct code *c, unsigned int size)
{
	struct label large = { .n = 0 }, done = { .n = 0 };

	EMIT(c, 0x48, 0x85, 0xc0);        /* test %rax,%rax */
	branch(c, &large, "\x0f\x88", 2); /* js */
	convert_signed(c, size);
	JMP(c, &done);
	bind(c, &large);
	EMIT(c, 0x48, 0x89, 0xc2); /* mov %rax,%rdx */
	EMIT(c, 0x48, 0xd1, 0xe8); /* shr %rax */
	EMIT(c, 0x83, 0xe2, 0x01); /* and $1,%edx */
	EMIT(c, 0x48, 0x09, 0xd0); /* or %rdx,%rax */
	convert_signed(c, size);
	byte(c, size == 4 ? 0xf3 : 0xf2); /* add %xmm0,%xmm0 */
	EMIT(c, 0x0f, 0x58, 0xc0);
	bind(c, &done);
}

/* rax = the number in xmm0, without its fraction; 1 << 63 where that is not in 64 bits */
static void to_whole(struct code *c, unsigned int size)
{
	byte(c, size == 4 ? 0xf3 : 0xf2); /* cvttss2si, cvttsd2si %xmm0,%rax */
	EMIT(c, 0x48, 0x0f, 0x2c, 0xc0);
}

static void from_float(struct code *c, const struct kymo_form_op *op)
{
	struct label done = { .n = 0 };

	scalar(c, op->size, 0x10, below(c, OPERAND));
	to_whole(c, op->size);
	if (op->is_signed)
		return;
	movabs(c, RDX, UINT64_C(1) << 63);
	EMIT(c, 0x48, 0x39, 0xd0); /* cmp %rdx,%rax */
	JNE(c, &done);
	movabs(c, RDX, op->size == 4 ? TWO_TO_63_SINGLE : TWO_TO_63);
	rsp_slot(c, 0x89, RDX, below(c, CONSTANT));
	scalar(c, op->size, 0x5c, below(c, CONSTANT));
	to_whole(c, op->size);
	movabs(c, RDX, UINT64_C(1) << 63);
	EMIT(c, 0x48, 0x31, 0xd0); /* xor %rdx,%rax */
	bind(c, &done);
}

void x86_change_float(struct code *c, const struct kymo_form_op *op)
{
	begin_float(c);
	switch (op->code) {
	case KYMO_FORM_TO_FLOAT:
		if (op->is_signed)
			convert_signed(c, op->size);
		else
			convert_unsigned(c, op->size);
		take_float(c, op->size);
		break;
	case KYMO_FORM_FROM_FLOAT:
		from_float(c, op);
		break;
	default:                                                    /* RESIZE_FLOAT */
		scalar(c, 12u - op->size, 0x5a, below(c, OPERAND)); /* cvtsd2ss, cvtss2sd */
		take_float(c, op->size);
		break;
	}
	end_float(c);
}

/* Of cmpss and cmpsd; all ones where it is so. */
static unsigned int predicate_of(const struct kymo_form_op *op)
{
	return op->code == KYMO_FORM_FLOAT_EQUAL ? 0 : op->code == KYMO_FORM_FLOAT_LESS ? 1 : 2;
}

void x86_join_floats(struct code *c, const struct kymo_form_op *op, int32_t slot)
{
	static const unsigned char opcodes[] = { [KYMO_FORM_FLOAT_ADD - KYMO_FORM_FLOAT_ADD] = 0x58,
						 [KYMO_FORM_FLOAT_SUBTRACT - KYMO_FORM_FLOAT_ADD] = 0x5c,
						 [KYMO_FORM_FLOAT_MULTIPLY - KYMO_FORM_FLOAT_ADD] = 0x59,
						 [KYMO_FORM_FLOAT_DIVIDE - KYMO_FORM_FLOAT_ADD] = 0x5e };
	const bool is_comparison = op->code >= KYMO_FORM_FLOAT_EQUAL;

	begin_float(c);
	scalar(c, op->size, 0x10, slot);
	scalar(c, op->size, is_comparison ? 0xc2 : opcodes[op->code - KYMO_FORM_FLOAT_ADD], below(c, OPERAND));
	if (is_comparison)
		byte(c, predicate_of(op));
	take_float(c, op->size);
	if (is_comparison)
		EMIT(c, 0x83, 0xe0, 0x01); /* and $1,%eax */
	end_float(c);
}
