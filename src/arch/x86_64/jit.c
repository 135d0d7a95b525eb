/*
 * JIT code: a program generates it while it runs, and may change it again.
 *
 * A jump that is written there is in danger if the program changes one of its bytes, and takes the rest for its own
 * code. Programs that replace code as a whole do no harm: the jump is gone then. Those that change it in place, with
 * threads about, change what one store can change: the distance of a direct jump or call, a long NOP or a comparison
 * that stands for one, a 64-bit constant. So such instructions are neither displaced nor relied on. Nor is what follows
 * the end of the flow: it may be free, and filled later.
 *
 * Such programs also use faults to detect errors (a null pointer, an index out of bounds), and find out which by the
 * program counter. So what may fault stays.
 */
#include "arch/x86_64/jit.h"

#include "arch/x86_64/decode.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/marks.h"

/* Whether the instruction is of a kind that is changed in place. */
static bool is_changed_in_place(const struct x86_insn *insn)
{
	const ZydisDecodedInstructionRaw *raw = &insn->z.raw;

	if (insn->has_target)
		return raw->imm[0].size == 32;
	if (x86_is_nop(insn))
		return insn->length >= KYMO_JUMP_SIZE;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_MOV)
		return raw->imm[0].size == 64 || raw->disp.size == 64;
	return insn->z.mnemonic == ZYDIS_MNEMONIC_CMP && insn->z.opcode == 0x3d && raw->imm[0].size == 32;
}

int x86_check_jit(const struct x86_site *site, unsigned int span, struct kymo_refusal *refusal)
{
	uint64_t at = site->vaddr, end = site->vaddr + span;
	struct x86_insn insn = site->insn;

	if (!site->code->is_jit)
		return 0;
	for (;;) {
		size_t size;
		const uint8_t *bytes;

		if (is_changed_in_place(&insn))
			return x86_refuse(refusal, at,
					  "the instruction at 0x%lx is of a kind that programs change in code that "
					  "they have made",
					  at);
		if (at == site->vaddr && x86_faults(site, &insn))
			return x86_refuse(refusal, at,
					  "the instruction at 0x%lx may fault, and the program would not know the "
					  "address of its copy",
					  at);
		at += insn.length;
		if (at >= end)
			return 0;
		if (x86_flow_ends(insn.flow))
			return x86_refuse(refusal, at,
					  "a jump would rely on 0x%lx, after the end of the flow, where the program "
					  "may put other code",
					  at);
		bytes = x86_text_at(site->map, at, &size);
		if (!bytes || x86_decode_full(&site->decoder, bytes, size, at, &insn) < 0)
			return x86_refuse(refusal, at, "a jump would rely on 0x%lx, where no instruction begins", at);
	}
}
