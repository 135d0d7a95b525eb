#include "arch/step.h"

#include <errno.h>

#include "arch/remote.h"
#include "arch/x86_64/decode.h"

#define TRAP_FLAG 0x100u
#define POPPED_FLAGS 0x244dd5u /* that popf changes in a program: not IF, IOPL, VM and the like */

static enum kymo_step_kind kind_of(const struct x86_insn *insn)
{
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL || insn->z.mnemonic == ZYDIS_MNEMONIC_SYSENTER ||
	    insn->z.mnemonic == ZYDIS_MNEMONIC_INT)
		return KYMO_STEP_SYSCALL;
	if (insn->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && insn->z.mnemonic == ZYDIS_MNEMONIC_CALL)
		return KYMO_STEP_CALL;
	if (insn->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && insn->z.mnemonic == ZYDIS_MNEMONIC_JMP)
		return KYMO_STEP_JUMP;
	switch (insn->flow) {
	case X86_FLOW_BRANCH:
		return KYMO_STEP_CONDITIONAL;
	case X86_FLOW_JUMP:
	case X86_FLOW_JUMP_INDIRECT:
		return KYMO_STEP_JUMP;
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_INDIRECT:
		return KYMO_STEP_CALL;
	case X86_FLOW_RETURN:
		return KYMO_STEP_RETURN;
	case X86_FLOW_STOP:
		return insn->z.mnemonic == ZYDIS_MNEMONIC_RET || insn->z.mnemonic == ZYDIS_MNEMONIC_IRETQ ||
				       insn->z.mnemonic == ZYDIS_MNEMONIC_IRETD ||
				       insn->z.mnemonic == ZYDIS_MNEMONIC_IRET
			       ? KYMO_STEP_RETURN
			       : KYMO_STEP_NEXT;
	default:
		return KYMO_STEP_NEXT;
	}
}

static uint8_t pushed_flags(const ZydisDecodedInstruction *z)
{
	return z->mnemonic == ZYDIS_MNEMONIC_PUSHFQ ? 8 : z->mnemonic == ZYDIS_MNEMONIC_PUSHF ? 2 : 0;
}

static uint8_t popped_flags(const ZydisDecodedInstruction *z)
{
	return z->mnemonic == ZYDIS_MNEMONIC_POPFQ ? 8 : z->mnemonic == ZYDIS_MNEMONIC_POPF ? 2 : 0;
}

int kymo_step_of(const uint8_t *bytes, size_t size, struct kymo_step *ret)
{
	struct x86_insn insn;
	ZydisDecoder decoder;

	x86_decoder_init(&decoder);
	if (x86_decode(&decoder, bytes, size, 0, &insn))
		return -EINVAL;
	*ret = (struct kymo_step){
		.kind = kind_of(&insn),
		.length = insn.length,
		.pushed_flags = pushed_flags(&insn.z),
		.popped_flags = popped_flags(&insn.z),
	};
	return 0;
}

bool kymo_step_branches(const struct kymo_step *step, uint64_t from, uint64_t to)
{
	const uint64_t next = from + step->length;

	switch (step->kind) {
	case KYMO_STEP_JUMP:
	case KYMO_STEP_CALL:
	case KYMO_STEP_RETURN:
		return true;
	case KYMO_STEP_CONDITIONAL:
		return to != next;
	default:
		return to != next && to != from;
	}
}

uint64_t kymo_step_pc(const struct user_regs_struct *registers)
{
	return registers->rip;
}

uint64_t kymo_step_sp(const struct user_regs_struct *registers)
{
	return registers->rsp;
}

bool kymo_step_is_own(const struct user_regs_struct *registers)
{
	return registers->eflags & TRAP_FLAG;
}

bool kymo_step_pop_flags(const struct kymo_step *step, uint64_t value, struct user_regs_struct *registers)
{
	const uint64_t mask = step->popped_flags == 2 ? POPPED_FLAGS & UINT16_MAX : POPPED_FLAGS;

	if (!step->popped_flags || value & TRAP_FLAG || registers->eflags & TRAP_FLAG ||
	    kymo_remote_restarts(registers))
		return false;
	registers->eflags = (registers->eflags & ~mask) | (value & mask);
	registers->rsp += step->popped_flags;
	registers->rip += step->length;
	return true;
}

bool kymo_step_clean_flags(uint16_t *flags)
{
	const bool was_set = *flags & TRAP_FLAG;

	*flags &= (uint16_t)~TRAP_FLAG;
	return was_set;
}
