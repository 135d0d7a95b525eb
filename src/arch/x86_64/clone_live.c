/*
 * Which registers a clone may use where.
 *
 * A register is free before an instruction if on all ways from there it is written before it is read. What is read by
 * others is taken for more than it is:
 *
 *	calls, jumps out, system calls	read every register, and write none
 *	returns				all but those of rcx, rsi, rdi and r8 to r11 which this function writes; all
 *					where other functions jump into the middle of this one
 *
 * A register that the function never writes is not free: with -fipa-ra the caller may know that, and keep a value in
 * it. One whose last value before the return is not used is not free either: code by hand has conventions of its own,
 * and gives a value back in it, or puts the caller's back into it. Only registers that calls clobber are used, as
 * unwinding puts the others back.
 */
#include "arch/x86_64/clone_live.h"

#include <Zydis/Zydis.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/decode.h"

#define BIT(reg) (1u << (reg))
#define RESULTS (BIT(RAX) | BIT(RDX))

/* Those that comparisons change. */
#define X86_FLAGS 0x8d5u

static uint16_t bit_of(ZydisRegister reg)
{
	int number = reg == ZYDIS_REGISTER_NONE ? -1 : x86_gpr(reg);

	return number < 0 ? 0 : (uint16_t)BIT(number);
}

/* Those that may leave alone what Zydis says they write: without a shadow stack, for a source of 0, or for a selector
 * that is not valid. Processors without tzcnt and lzcnt execute bsf and bsr. */
static bool may_keep_register(const struct x86_insn *insn)
{
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_RDSSPD:
	case ZYDIS_MNEMONIC_RDSSPQ:
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_LSL:
		return true;
	default:
		return false;
	}
}

static void note_register(struct x86_clone_insn *ret, const struct x86_insn *insn, const ZydisDecodedOperand *op)
{
	uint16_t bit = bit_of(op->reg.value);

	if (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		ret->reads |= bit;
	if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	ret->clobbers |= bit;
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
		ret->named |= bit;
	if ((op->actions & ZYDIS_OPERAND_ACTION_WRITE) && op->size >= 32 && !may_keep_register(insn))
		ret->writes |= bit;
	else
		ret->reads |= bit;
}

/* A count of 0 leaves the flags of shifts and repeated instructions alone. */
static bool may_keep_flags(const struct x86_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_SHIFT || insn->z.meta.category == ZYDIS_CATEGORY_ROTATE ||
	       insn->z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

static void note_flags(struct x86_clone_insn *ret, const struct x86_insn *insn)
{
	const ZydisAccessedFlags *flags = insn->z.cpu_flags;

	if (!flags)
		return;
	ret->flags_read = (uint16_t)(flags->tested & X86_FLAGS);
	if (may_keep_flags(insn))
		return;
	ret->flags_written = (uint16_t)((flags->modified | flags->set_0 | flags->set_1) & X86_FLAGS);
	/* bsf and bsr need not write the carry flag. */
	if (may_keep_register(insn))
		ret->flags_written &= ZYDIS_CPUFLAG_ZF;
	/* Processors do give these a value, by these instructions alone. */
	if (insn->z.meta.category == ZYDIS_CATEGORY_LOGICAL)
		ret->flags_written |= (uint16_t)(flags->undefined & X86_FLAGS);
}

void x86_clone_note_registers(struct x86_clone_insn *ret, const struct x86_insn *insn)
{
	note_flags(ret, insn);
	for (int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER)
			note_register(ret, insn, op);
		else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
			ret->reads |= (uint16_t)(bit_of(op->mem.base) | bit_of(op->mem.index));
	}
	if (x86_flow_is_call(insn->flow) || insn->flow == X86_FLOW_STOP ||
	    insn->z.meta.category == ZYDIS_CATEGORY_SYSCALL || insn->z.meta.category == ZYDIS_CATEGORY_INTERRUPT) {
		ret->reads = X86_ALL_REGISTERS;
		ret->writes = 0;
		ret->flags_read = X86_FLAGS;
	}
}

/* ---- what is live ---------------------------------------------------------------------------- */

static uint16_t live_at(const struct kymo_clone *clone, int32_t index)
{
	return index < 0 ? X86_ALL_REGISTERS : clone->insns.items[index].live;
}

/* Code by hand may hand flags over where it is left. */
static uint16_t flags_at(const struct kymo_clone *clone, int32_t index)
{
	return index < 0 ? X86_FLAGS : clone->insns.items[index].flags_live;
}

static uint16_t flags_after(const struct kymo_clone *clone, const struct x86_clone_insn *insn)
{
	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_NEXT:
		return flags_at(clone, insn->next);
	case X86_FLOW_BRANCH:
		return flags_at(clone, insn->next) | flags_at(clone, insn->to);
	case X86_FLOW_JUMP:
		return flags_at(clone, insn->to);
	default:
		return X86_FLAGS;
	}
}

static void propagate_flags(struct kymo_clone *clone)
{
	bool changed;

	do {
		changed = false;
		for (size_t i = clone->insns.n; i-- > 0;) {
			struct x86_clone_insn *insn = &clone->insns.items[i];
			uint16_t live =
				(uint16_t)(insn->flags_read | (flags_after(clone, insn) & ~insn->flags_written));

			changed |= live != insn->flags_live;
			insn->flags_live = live;
		}
	} while (changed);
}

static uint16_t live_after(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint16_t at_return,
			   uint16_t at_targets)
{
	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_NEXT:
		return live_at(clone, insn->next);
	case X86_FLOW_BRANCH:
		return live_at(clone, insn->next) | live_at(clone, insn->to);
	case X86_FLOW_JUMP:
		return live_at(clone, insn->to);
	case X86_FLOW_JUMP_INDIRECT:
		return insn->stays_in ? at_targets : X86_ALL_REGISTERS;
	case X86_FLOW_RETURN:
		return at_return;
	default:
		return X86_ALL_REGISTERS;
	}
}

/* What an indirect jump may find at its targets. One that has no catch runs in place, and is as live as it is here. */
static uint16_t live_at_targets(const struct kymo_clone *clone)
{
	uint16_t live = 0;

	if (clone->n_uncaught)
		return X86_ALL_REGISTERS;
	for (size_t i = 0; i < clone->catches.n; i++)
		if (clone->catches.items[i].kind != KYMO_CATCH_ENTRY)
			live |= live_at(clone, x86_clone_find(clone, clone->catches.items[i].vaddr));
	return live;
}

static void propagate(struct kymo_clone *clone, uint16_t at_return)
{
	bool changed;

	for (size_t i = 0; i < clone->insns.n; i++)
		clone->insns.items[i].live = 0;
	do {
		uint16_t at_targets = live_at_targets(clone);

		changed = false;
		for (size_t i = clone->insns.n; i-- > 0;) {
			struct x86_clone_insn *insn = &clone->insns.items[i];
			uint16_t after = live_after(clone, insn, at_return, at_targets);
			uint16_t live = (uint16_t)(insn->reads | (after & ~insn->writes));

			changed |= live != insn->live;
			insn->live = live;
		}
	} while (changed);
}

/* Registers that some instruction writes by name, and none reads. */
static uint16_t written_for_nobody(const struct kymo_clone *clone, uint16_t at_return)
{
	uint16_t at_targets = live_at_targets(clone), ret = 0;

	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		ret |= (uint16_t)(insn->named & ~live_after(clone, insn, at_return, at_targets));
	}
	return ret;
}

/* ---- the register that is held --------------------------------------------------------------- */

void x86_clone_choose_held(struct kymo_clone *clone)
{
	uint32_t sums[16] = { 0 }, best = 0;

	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		for (int reg = 0; reg < 16; reg++) {
			uint32_t weight = insn->weight;

			if (!(X86_VOLATILE >> reg & 1))
				continue;
			if (insn->is_site && !(insn->live >> reg & 1))
				sums[reg] += 2 * weight;
			/* Then it is lost on the way. */
			if (insn->clobbers >> reg & 1 && sums[reg] >= weight)
				sums[reg] -= weight;
		}
	}
	for (int reg = 0; reg < 16; reg++) {
		if (sums[reg] <= best)
			continue;
		best = sums[reg];
		clone->held = reg;
	}
}

void x86_clone_live(struct kymo_clone *clone)
{
	uint16_t clobbered = 0, at_return, more;

	for (size_t i = 0; i < clone->insns.n; i++)
		clobbered |= clone->insns.items[i].clobbers;
	/* What another function has jumped into need not have written all of these on its way to the return. */
	at_return = clone->is_shared ? X86_ALL_REGISTERS
				     : (uint16_t)(X86_ALL_REGISTERS & ~(clobbered & X86_VOLATILE & ~RESULTS));
	do {
		propagate(clone, at_return);
		more = written_for_nobody(clone, at_return) & (uint16_t)~at_return;
		at_return |= more;
	} while (more);
	propagate_flags(clone);
}

int x86_clone_free_register(const struct kymo_clone *clone, const struct x86_clone_insn *insn)
{
	unsigned int free = X86_VOLATILE & ~(unsigned int)insn->live;

	if (clone->held < X86_NO_REGISTER && free >> clone->held & 1)
		return clone->held;
	return free ? __builtin_ctz(free) : X86_NO_REGISTER;
}
