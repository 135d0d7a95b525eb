/* What code in a pad finds of the program: its registers, and memory that can be read for certain. */
#include "arch/x86_64/frame.h"

int32_t x86_slot_of(unsigned int reg)
{
	switch (reg) {
	case RAX:
		return SLOT_RAX;
	case RDX:
		return SLOT_RDX;
	case R10:
		return SLOT_R10;
	case R11:
		return SLOT_R11;
	default:
		return -1;
	}
}

void x86_load_saved(struct code *c, unsigned int to, unsigned int reg)
{
	if (x86_slot_of(reg) >= 0) {
		rsp_slot(c, 0x8b, to, x86_slot_of(reg));
	} else if (reg == RSP) {
		rsp_slot(c, 0x8d, to, FRAME);
	} else {
		byte(c, 0x48 | (reg >> 3) << 2 | to >> 3); /* mov %reg,%to */
		byte(c, 0x89);
		byte(c, 0xc0 | (reg & 7) << 3 | (to & 7));
	}
}

void x86_check_readable(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault)
{
	struct label readable = { .n = 0 };

	rsp_slot(c, 0x8d, RDX, 0);
	EMIT(c, 0x48, 0x81, 0xe2, 0x00, 0xf0, 0xff, 0xff); /* and $-4096,%rdx: the frame's page */
	EMIT(c, 0x48, 0x39, 0xd0);                         /* cmp %rdx,%rax */
	JB(c, fault);
	rsp_slot(c, 0x8d, RDX, FRAME);
	EMIT(c, 0x48, 0x81, 0xca, 0xff, 0x0f, 0, 0); /* or $4095,%rdx: last byte of the stack pointer's page */
	if (size <= 128) {
		EMIT(c, 0x48, 0x83, 0xea); /* sub $(size - 1),%rdx */
		byte(c, size - 1);
	} else {
		EMIT(c, 0x48, 0x81, 0xea);
		imm32(c, size - 1);
	}
	EMIT(c, 0x48, 0x39, 0xd0);           /* cmp %rdx,%rax */
	branch(c, &readable, "\x0f\x86", 2); /* jbe */
	if (env->stack_high > size) {
		movabs(c, RDX, env->stack_high - size);
		EMIT(c, 0x48, 0x39, 0xd0); /* cmp %rdx,%rax */
		JA(c, fault);
		movabs(c, RDX, env->stack_low);
		EMIT(c, 0x48, 0x39, 0xd4); /* cmp %rdx,%rsp */
		JB(c, fault);
	} else {
		JMP(c, fault);
	}
	bind(c, &readable);
}

void x86_load_bytes(struct code *c, unsigned int size)
{
	switch (size) {
	case 1:
		EMIT(c, 0x0f, 0xb6, 0x00); /* movzbl (%rax),%eax */
		break;
	case 2:
		EMIT(c, 0x0f, 0xb7, 0x00); /* movzwl (%rax),%eax */
		break;
	case 4:
		EMIT(c, 0x8b, 0x00); /* mov (%rax),%eax */
		break;
	default:
		EMIT(c, 0x48, 0x8b, 0x00); /* mov (%rax),%rax */
		break;
	}
}
