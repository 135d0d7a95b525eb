#include "arch/step.h"

#include <errno.h>

#include "arch/x86_64/decode.h"

#define CALL_MIN 2u /* bytes: call *%rax */
#define CALL_MAX 7u /* call *disp32(%r12,…) */

static enum kymo_step_kind step_kind(const struct x86_insn *insn)
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

int kymo_step_of(const uint8_t *bytes, size_t size, struct kymo_step *ret)
{
	struct x86_insn insn;
	ZydisDecoder decoder;

	x86_decoder_init(&decoder);
	if (x86_decode(&decoder, bytes, size, 0, &insn))
		return -EINVAL;
	*ret = (struct kymo_step){
		.kind = step_kind(&insn),
		.length = insn.length,
		.flags = kymo_flags_step_of(bytes, size),
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

bool kymo_step_ends_call(const uint8_t *bytes, size_t size)
{
	for (size_t length = CALL_MIN; length <= CALL_MAX && length <= size; length++) {
		struct kymo_step step;

		if (!kymo_step_of(bytes + size - length, length, &step) && step.kind == KYMO_STEP_CALL &&
		    step.length == length)
			return true;
	}
	return false;
}
