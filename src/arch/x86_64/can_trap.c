/* Which instructions can be displaced by a pad that traps. */
#include "arch/flags.h"
#include "arch/leave_pad.h"
#include "arch/plan.h"
#include "arch/x86_64/decode.h"

/* One after which its pad does not know what it has done: it takes several there, or a single step shows in it. */
static bool is_plain(const struct x86_insn *insn, const uint8_t *bytes)
{
	const struct kymo_flags_step flags = kymo_flags_step_of(bytes, insn->length);

	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_INT:
		return false;
	default:
		return !flags.pushed && !flags.popped;
	}
}

bool kymo_pad_can_trap(const struct kymo_plan *plan)
{
	const unsigned int n = plan->n_insns + plan->n_copied;
	ZydisDecoder decoder;

	if (plan->n_insns != 1 || n > KYMO_WINDOW_MAX_INSNS)
		return false;
	x86_decoder_init(&decoder);
	for (unsigned int i = 0; i < n; i++) {
		const unsigned int at = plan->insn_offset[i];
		struct x86_insn insn;

		if (x86_decode(&decoder, plan->original + at, plan->insn_offset[i + 1] - at, plan->vaddr + at, &insn) ||
		    !is_plain(&insn, plan->original + at))
			return false;
	}
	return true;
}
