/*
 * What may fault. A displaced instruction that faults shows its handler the pad's address: unwinders find no table for
 * it. Runtimes that look the program counter up (for a null pointer, an overflow of the stack) take the fault for a
 * crash.
 *
 * A sound program accesses three kinds of memory without a fault: the stack within its red zone and above, what
 * RIP-relative operands reach in the module, and thread-local storage by FS. Probes of the stack may fault: compilers
 * make them to find out whether there is more of it. The look of a goroutine at its stack's limit reads the goroutine's
 * own descriptor. All else may be a bad pointer.
 */
#include "arch/x86_64/faults.h"

#include "arch/x86_64/decode.h"
#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

#define RED_ZONE 128

static bool is_of_integers(const struct x86_insn *insn)
{
	if (insn->z.meta.isa_ext != ZYDIS_ISA_EXT_BASE && insn->z.meta.isa_ext != ZYDIS_ISA_EXT_LONGMODE)
		return false;
	switch (insn->z.meta.category) {
	case ZYDIS_CATEGORY_BINARY:
		return insn->z.mnemonic != ZYDIS_MNEMONIC_DIV && insn->z.mnemonic != ZYDIS_MNEMONIC_IDIV;
	case ZYDIS_CATEGORY_MISC:
		return insn->z.mnemonic == ZYDIS_MNEMONIC_LEA || insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE;
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_FLAGOP:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SEMAPHORE:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_WIDENOP:
		return true;
	default:
		return false;
	}
}

static bool is_of_vectors(const struct x86_insn *insn)
{
	switch (insn->z.meta.isa_ext) {
	case ZYDIS_ISA_EXT_SSE:
	case ZYDIS_ISA_EXT_SSE2:
	case ZYDIS_ISA_EXT_SSE3:
	case ZYDIS_ISA_EXT_SSSE3:
	case ZYDIS_ISA_EXT_SSE4:
	case ZYDIS_ISA_EXT_AVX:
	case ZYDIS_ISA_EXT_AVX2:
		return true;
	default:
		return false;
	}
}

/* Moves and bitwise work; floating-point numbers may trap when they are computed with. */
static bool moves_vectors(const struct x86_insn *insn)
{
	ZydisInstructionCategory category = insn->z.meta.category;

	return is_of_vectors(insn) && (category == ZYDIS_CATEGORY_DATAXFER || category == ZYDIS_CATEGORY_LOGICAL ||
				       category == ZYDIS_CATEGORY_LOGICAL_FP);
}

/* What works without a trap on values, whatever its operands are; memory is another question. */
static unsigned int faults_of_kind(const struct x86_insn *insn)
{
	/* Without a NOP's or a landing mark's own meaning, processors take these for NOPs. */
	if (is_of_integers(insn) || moves_vectors(insn) || insn->z.mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	    x86_is_nop(insn))
		return 0;
	if (insn->flow == X86_FLOW_STOP)
		return KYMO_FAULT_ANY;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_DIV || insn->z.mnemonic == ZYDIS_MNEMONIC_IDIV || is_of_vectors(insn) ||
	    insn->z.meta.isa_ext == ZYDIS_ISA_EXT_X87)
		return KYMO_FAULT_ARITHMETIC;
	return KYMO_FAULT_ANY;
}

/* or $0,…(%rsp), or an access below the red zone: it asks whether there is more stack. */
static bool probes_stack(const struct x86_insn *insn, const ZydisDecodedOperand *op)
{
	if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
		return false;
	return op->mem.disp.value < -RED_ZONE ||
	       (insn->z.mnemonic == ZYDIS_MNEMONIC_OR && insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		!insn->op[1].imm.value.u);
}

static bool is_sound_operand(const struct x86_insn *insn, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *mem = &op->mem;

	if (mem->type == ZYDIS_MEMOP_TYPE_AGEN)
		return true;
	if (mem->index != ZYDIS_REGISTER_NONE || mem->segment == ZYDIS_REGISTER_GS)
		return false;
	if (mem->segment == ZYDIS_REGISTER_FS)
		return mem->base == ZYDIS_REGISTER_NONE;
	/* leave pops from where rbp points to: the frame */
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
		return true;
	return mem->base == ZYDIS_REGISTER_RIP || (mem->base == ZYDIS_REGISTER_RSP && !probes_stack(insn, op));
}

unsigned int x86_faults_anywhere(const struct x86_insn *insn)
{
	unsigned int faults = faults_of_kind(insn);

	for (unsigned int i = 0; i < insn->z.operand_count; i++)
		if (insn->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && !x86_is_nop(insn) &&
		    !is_sound_operand(insn, &insn->op[i]))
			faults |= KYMO_FAULT_MEMORY;
	return faults;
}

/* A goroutine looks at its limit. */
static bool is_stack_check(const struct x86_site *site, const struct x86_insn *insn)
{
	const struct x86_stack *stacks = site->map->stacks;
	size_t index = (size_t)(site->about - site->map->functions);

	return stacks && insn->address >= site->function->start && insn->address < stacks[index].passed;
}

unsigned int x86_faults(const struct x86_site *site, const struct x86_insn *insn)
{
	return x86_faults_anywhere(insn) & ~(is_stack_check(site, insn) ? KYMO_FAULT_MEMORY : 0);
}

/* ---- flags ----------------------------------------------------------------------------------- */

#define LOOKED_AT_MAX 12 /* instructions */
#define ARITHMETIC_FLAGS \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | \
	 ZYDIS_CPUFLAG_OF)

/* The flags that it writes whatever its operands are. Shifts by zero write none. */
static ZydisAccessedFlagsMask written_by(const struct x86_insn *insn)
{
	const ZydisAccessedFlags *flags = insn->z.cpu_flags;

	if (insn->z.meta.category != ZYDIS_CATEGORY_BINARY && insn->z.meta.category != ZYDIS_CATEGORY_LOGICAL)
		return 0;
	return flags->modified | flags->set_0 | flags->set_1 | flags->undefined;
}

bool x86_flags_are_dead(const struct kymo_entry_map *map, uint64_t vaddr)
{
	ZydisAccessedFlagsMask left = ARITHMETIC_FLAGS;
	ZydisDecoder decoder;
	struct x86_insn insn;

	x86_decoder_init(&decoder);
	for (int i = 0; i < LOOKED_AT_MAX; i++, vaddr += insn.length) {
		size_t size;
		const uint8_t *bytes = x86_text_at(map, vaddr, &size);

		if (!bytes || x86_decode_full(&decoder, bytes, size, vaddr, &insn) || insn.flow != X86_FLOW_NEXT ||
		    !insn.z.cpu_flags || insn.z.cpu_flags->tested & ARITHMETIC_FLAGS ||
		    insn.z.meta.category == ZYDIS_CATEGORY_SYSCALL || insn.z.meta.category == ZYDIS_CATEGORY_INTERRUPT)
			return false;
		left &= ~written_by(&insn);
		if (!left)
			return true;
	}
	return false;
}

/* ---- a word of the stack --------------------------------------------------------------------- */

/* It stores 8 bytes right below the stack pointer, and reads no memory. */
static bool is_push(const struct x86_insn *insn)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_PUSH && insn->z.operand_width == 64 &&
	       insn->op[0].type != ZYDIS_OPERAND_TYPE_MEMORY;
}

/* It cannot fault, and has nothing to do with memory or the stack pointer. */
static bool is_apart(const struct x86_insn *insn)
{
	if (insn->flow != X86_FLOW_NEXT || x86_faults_anywhere(insn) ||
	    insn->z.meta.category == ZYDIS_CATEGORY_SYSCALL || insn->z.meta.category == ZYDIS_CATEGORY_INTERRUPT)
		return false;
	for (unsigned int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN)
			return false;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) == ZYDIS_REGISTER_RSP)
			return false;
	}
	return true;
}

uint8_t x86_scratch(const struct kymo_entry_map *map, const struct kymo_plan *plan)
{
	ZydisDecoder decoder;

	x86_decoder_init(&decoder);
	for (unsigned int i = 0; i < plan->n_insns; i++) {
		uint64_t vaddr = plan->vaddr + plan->insn_offset[i];
		struct x86_insn insn;
		size_t size;
		const uint8_t *bytes = x86_text_at(map, vaddr, &size);

		if (!bytes || x86_decode_full(&decoder, bytes, size, vaddr, &insn))
			return 0;
		if (is_push(&insn))
			return 8;
		if (!is_apart(&insn))
			return 0;
	}
	return 0;
}

/* ---- the question ---------------------------------------------------------------------------- */

int x86_check_faults(const struct x86_site *site, const struct x86_insn *insn, struct kymo_refusal *refusal)
{
	unsigned int faults = x86_faults(site, insn) & site->watched_faults;
	const char *signal = faults & KYMO_FAULT_MEMORY       ? "SIGSEGV or SIGBUS"
			     : faults & KYMO_FAULT_ARITHMETIC ? "SIGFPE"
							      : "SIGILL";

	if (!faults)
		return 0;
	return x86_refuse(refusal, insn->address,
			  "the instruction at 0x%lx may fault, and the process handles %s: its handler would find the "
			  "address of a copy",
			  insn->address, signal);
}
