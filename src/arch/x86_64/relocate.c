/*
 * Displaced instructions, rewritten to run elsewhere.
 *
 * An instruction depends on where it stands in three ways: it names memory relative to RIP, jumps relative to RIP, or
 * stores the address after itself. The displacement changes; a jump is widened to 32 bits. Of the last kind, calls
 * become a push of the original return address, in two moves that change neither flags nor registers, and a jump; all
 * others are refused. So are those during which the kernel or the processor look at the PC (traps, transactions; system
 * calls unless they are displaced alone), and what is not known to be harmless: categories are listed that may move,
 * not those that may not.
 *
 * With a shadow stack a call that was taken apart would fault at its return; the recorder that applies plans knows
 * whether the thread has one.
 */
#include "arch/x86_64/relocate.h"

#include <errno.h>
#include <string.h>

#include "arch/plan.h"
#include "arch/x86_64/decode.h"

/* ---- what may move --------------------------------------------------------------------------- */

/* clang-format off */
static const uint8_t movable_categories[] = {
	ZYDIS_CATEGORY_ADOX_ADCX,   ZYDIS_CATEGORY_AES,		   ZYDIS_CATEGORY_AMD3DNOW,
	ZYDIS_CATEGORY_AMX_TILE,    ZYDIS_CATEGORY_AVX,		   ZYDIS_CATEGORY_AVX2,
	ZYDIS_CATEGORY_AVX2GATHER,  ZYDIS_CATEGORY_AVX512,	   ZYDIS_CATEGORY_AVX512_4FMAPS,
	ZYDIS_CATEGORY_AVX512_4VNNIW, ZYDIS_CATEGORY_AVX512_BITALG, ZYDIS_CATEGORY_AVX512_VBMI,
	ZYDIS_CATEGORY_AVX512_VP2INTERSECT, ZYDIS_CATEGORY_BINARY, ZYDIS_CATEGORY_BITBYTE,
	ZYDIS_CATEGORY_BLEND,	    ZYDIS_CATEGORY_BMI1,	   ZYDIS_CATEGORY_BMI2,
	ZYDIS_CATEGORY_BROADCAST,   ZYDIS_CATEGORY_CALL,	   ZYDIS_CATEGORY_CLDEMOTE,
	ZYDIS_CATEGORY_CLFLUSHOPT,  ZYDIS_CATEGORY_CLWB,	   ZYDIS_CATEGORY_CMOV,
	ZYDIS_CATEGORY_COMPRESS,    ZYDIS_CATEGORY_COND_BR,	   ZYDIS_CATEGORY_CONFLICT,
	ZYDIS_CATEGORY_CONVERT,	    ZYDIS_CATEGORY_DATAXFER,	   ZYDIS_CATEGORY_DECIMAL,
	ZYDIS_CATEGORY_EXPAND,	    ZYDIS_CATEGORY_FCMOV,	   ZYDIS_CATEGORY_FLAGOP,
	ZYDIS_CATEGORY_FMA4,	    ZYDIS_CATEGORY_FP16,	   ZYDIS_CATEGORY_GATHER,
	ZYDIS_CATEGORY_GFNI,	    ZYDIS_CATEGORY_IFMA,	   ZYDIS_CATEGORY_KMASK,
	ZYDIS_CATEGORY_LOGICAL,	    ZYDIS_CATEGORY_LOGICAL_FP,	   ZYDIS_CATEGORY_LZCNT,
	ZYDIS_CATEGORY_MISC,	    ZYDIS_CATEGORY_MMX,		   ZYDIS_CATEGORY_MOVDIR,
	ZYDIS_CATEGORY_NOP,	    ZYDIS_CATEGORY_PCLMULQDQ,	   ZYDIS_CATEGORY_PKU,
	ZYDIS_CATEGORY_POP,	    ZYDIS_CATEGORY_PREFETCH,	   ZYDIS_CATEGORY_PREFETCHWT1,
	ZYDIS_CATEGORY_PUSH,	    ZYDIS_CATEGORY_RDPID,	   ZYDIS_CATEGORY_RDRAND,
	ZYDIS_CATEGORY_RDSEED,	    ZYDIS_CATEGORY_RDWRFSGS,	   ZYDIS_CATEGORY_RET,
	ZYDIS_CATEGORY_ROTATE,	    ZYDIS_CATEGORY_SCATTER,	   ZYDIS_CATEGORY_SEMAPHORE,
	ZYDIS_CATEGORY_SERIALIZE,   ZYDIS_CATEGORY_SETCC,	   ZYDIS_CATEGORY_SHA,
	ZYDIS_CATEGORY_SHIFT,	    ZYDIS_CATEGORY_SSE,		   ZYDIS_CATEGORY_STRINGOP,
	ZYDIS_CATEGORY_STTNI,	    ZYDIS_CATEGORY_TBM,		   ZYDIS_CATEGORY_UFMA,
	ZYDIS_CATEGORY_UNCOND_BR,   ZYDIS_CATEGORY_VAES,	   ZYDIS_CATEGORY_VBMI2,
	ZYDIS_CATEGORY_VEX,	    ZYDIS_CATEGORY_VFMA,	   ZYDIS_CATEGORY_VPCLMULQDQ,
	ZYDIS_CATEGORY_WAITPKG,	    ZYDIS_CATEGORY_WIDENOP,	   ZYDIS_CATEGORY_X87_ALU,
	ZYDIS_CATEGORY_XOP,	    ZYDIS_CATEGORY_XSAVE,	   ZYDIS_CATEGORY_XSAVEOPT,
};
/* clang-format on */

static const struct {
	ZydisMnemonic mnemonic;
	const char *reason; /* NULL: it may move, whatever its category */
} particular[] = {
	{ ZYDIS_MNEMONIC_RDTSC, NULL },
	{ ZYDIS_MNEMONIC_RDTSCP, NULL },
	{ ZYDIS_MNEMONIC_RDSSPD, NULL },
	{ ZYDIS_MNEMONIC_RDSSPQ, NULL },
	{ ZYDIS_MNEMONIC_INCSSPD, NULL },
	{ ZYDIS_MNEMONIC_INCSSPQ, NULL },
	{ ZYDIS_MNEMONIC_ENDBR64, "marks where indirect branches may land, and stays there" },
	{ ZYDIS_MNEMONIC_ENDBR32, "marks where indirect branches may land, and stays there" },
	{ ZYDIS_MNEMONIC_SYSCALL, "is a system call: a thread may be asleep in it and start it again" },
	{ ZYDIS_MNEMONIC_SYSENTER, "is a system call: a thread may be asleep in it and start it again" },
	{ ZYDIS_MNEMONIC_INT, "is a system call: a thread may be asleep in it and start it again" },
	{ ZYDIS_MNEMONIC_INT1, "traps, and its handler may look at its address" },
	{ ZYDIS_MNEMONIC_INT3, "traps, and its handler may look at its address" },
	{ ZYDIS_MNEMONIC_UD0, "traps, and its handler may look at its address" },
	{ ZYDIS_MNEMONIC_UD1, "traps, and its handler may look at its address" },
	{ ZYDIS_MNEMONIC_UD2, "traps, and its handler may look at its address" },
	{ ZYDIS_MNEMONIC_XBEGIN, "belongs to a transaction" },
	{ ZYDIS_MNEMONIC_XEND, "belongs to a transaction" },
	{ ZYDIS_MNEMONIC_XABORT, "belongs to a transaction" },
	{ ZYDIS_MNEMONIC_HLT, "is privileged" },
	{ ZYDIS_MNEMONIC_MONITOR, "is privileged" },
	{ ZYDIS_MNEMONIC_MWAIT, "is privileged" },
};

static bool may_move_category(uint8_t category)
{
	for (size_t i = 0; i < sizeof(movable_categories); i++) {
		if (movable_categories[i] == category)
			return true;
	}
	return false;
}

static bool is_rsp_based(const struct x86_insn *insn)
{
	const ZydisDecodedOperandMem *mem = &insn->op[0].mem;

	return insn->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       (mem->base == ZYDIS_REGISTER_RSP || mem->base == ZYDIS_REGISTER_ESP);
}

/* Indirect calls read their operand before they push, taken apart after. */
static const char *cannot_move_call(const struct x86_insn *insn)
{
	const ZydisDecodedOperand *op = &insn->op[0];
	int64_t disp = insn->z.raw.disp.value;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && x86_gpr(op->reg.value) == 4)
		return "calls the address in the stack pointer, which the push of the return address changes";
	if (!is_rsp_based(insn))
		return NULL;
	if (op->mem.index == ZYDIS_REGISTER_NONE && disp > -16 && disp < 0)
		return "reads its target from where it stores the return address";
	if (disp > INT32_MAX - 8)
		return "reads its target from an address that cannot be encoded after the push";
	return NULL;
}

const char *x86_cannot_move(const struct x86_insn *insn)
{
	const ZydisDecodedInstruction *z = &insn->z;

	for (size_t i = 0; i < sizeof(particular) / sizeof(particular[0]); i++) {
		if (particular[i].mnemonic == z->mnemonic)
			return particular[i].reason;
	}
	if (z->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
		return "is privileged";
	if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return "is a far branch";
	if (x86_is_branch16(insn))
		return "is a branch with a 66 prefix, which processors disagree about";
	if (!may_move_category((uint8_t)z->meta.category))
		return "is of a kind that is not known to work at another address";
	if (insn->has_rip && z->address_width != 64)
		return "addresses memory relative to EIP";
	if (z->operand_count && insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    (insn->op[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	    ZydisRegisterGetClass(insn->op[0].reg.value) == ZYDIS_REGCLASS_SEGMENT)
		return "changes a segment register";
	if (insn->flow == X86_FLOW_CALL_INDIRECT)
		return cannot_move_call(insn);
	return NULL;
}

/* A system call that is started again goes back two bytes: to its own start, or to that of its copy. `syscall`
 * leaves the copy's address in rcx, which callers hold for clobbered. */
static bool is_restarted_in_place(const struct x86_insn *insn)
{
	if (insn->length != 2)
		return false;
	return insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
	       (insn->z.mnemonic == ZYDIS_MNEMONIC_INT && insn->z.raw.imm[0].value.u == 0x80);
}

const char *x86_cannot_move_alone(const struct x86_insn *insn)
{
	return is_restarted_in_place(insn) ? NULL : x86_cannot_move(insn);
}

bool x86_reads_code(const struct x86_insn *insn, uint64_t low, uint64_t size)
{
	/* 64 bytes is the widest operand that is addressed as one. */
	return insn->has_rip && !x86_is_rip_lea(insn) && insn->rip + 64 > low && insn->rip < low + size;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writer {
	uint8_t *out;
	size_t size, used;
	uint64_t to; /* runtime address of out[0] */
	int err;     /* the first one; nothing is written after it */
};

static void put_bytes(struct writer *writer, const void *bytes, size_t n)
{
	if (!writer->err && writer->size - writer->used < n)
		writer->err = -ENOSPC;
	if (writer->err)
		return;
	memcpy(writer->out + writer->used, bytes, n);
	writer->used += n;
}

static void put32(struct writer *writer, uint32_t value)
{
	put_bytes(writer, &value, sizeof(value));
}

/* The distance from the end of a 4-byte field, here, and `after` more bytes to `target`. */
static void put_distance(struct writer *writer, uint64_t target, unsigned int after)
{
	int64_t distance = (int64_t)(target - (writer->to + writer->used + 4 + after));

	if (!writer->err && distance != (int32_t)distance)
		writer->err = -ERANGE;
	put32(writer, (uint32_t)distance);
}

static void put_jump(struct writer *writer, uint64_t target)
{
	put_bytes(writer, "\xe9", 1);
	put_distance(writer, target, 0);
}

static void put_branch(struct writer *writer, const struct x86_insn *insn)
{
	uint8_t opcode = insn->z.opcode;

	if ((opcode & 0xfc) == 0xe0) {
		/* loopne, loope, loop, jrcxz know rel8 alone: hop over the jump that is taken otherwise. */
		if (insn->z.address_width == 32)
			put_bytes(writer, "\x67", 1);
		put_bytes(writer, &opcode, 1);
		put_bytes(writer, "\x02\xeb\x05", 3);
		put_jump(writer, insn->target);
		return;
	}
	opcode = 0x80 | (opcode & 0x0f);
	put_bytes(writer, "\x0f", 1);
	put_bytes(writer, &opcode, 1);
	put_distance(writer, insn->target, 0);
}

static void put_push_address(struct writer *writer, uint64_t address)
{
	uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);

	put_bytes(writer, "\x68", 1); /* push $low, its sign extended */
	put32(writer, low);
	if (high == ((low >> 31) ? UINT32_MAX : 0))
		return;
	put_bytes(writer, "\xc7\x44\x24\x04", 4); /* movl $high,4(%rsp) */
	put32(writer, high);
}

/* The bytes of the instruction with another RIP-relative displacement. */
static void put_moved(struct writer *writer, const struct x86_insn *insn, const uint8_t *bytes)
{
	unsigned int at = insn->z.raw.disp.offset;

	if (!insn->has_rip) {
		put_bytes(writer, bytes, insn->length);
		return;
	}
	put_bytes(writer, bytes, at);
	put_distance(writer, insn->rip, insn->length - at - 4u);
	put_bytes(writer, bytes + at + 4, insn->length - at - 4u);
}

/* jmp with the operand of an indirect call (/2 becomes /4), which is read with rsp 8 lower than before. */
static void put_called(struct writer *writer, const struct x86_insn *insn, const uint8_t *bytes)
{
	const ZydisDecodedInstructionRaw *raw = &insn->z.raw;
	struct x86_insn jump = *insn;
	uint8_t copy[ZYDIS_MAX_INSTRUCTION_LENGTH];
	int32_t disp = (int32_t)raw->disp.value + 8;
	int8_t disp8 = (int8_t)disp;
	bool is_short = disp == disp8;

	memcpy(copy, bytes, insn->length);
	copy[raw->modrm.offset] ^= 0x30;
	if (!is_rsp_based(insn)) {
		put_moved(writer, &jump, copy);
		return;
	}
	copy[raw->modrm.offset] = (uint8_t)((copy[raw->modrm.offset] & 0x3f) | (is_short ? 0x40 : 0x80));
	put_bytes(writer, copy, raw->sib.offset + 1u);
	if (is_short)
		put_bytes(writer, &disp8, 1);
	else
		put32(writer, (uint32_t)disp);
}

static void put_insn(struct writer *writer, const struct x86_insn *insn, const uint8_t *bytes)
{
	switch (insn->flow) {
	case X86_FLOW_JUMP:
		put_jump(writer, insn->target);
		break;
	case X86_FLOW_BRANCH:
		put_branch(writer, insn);
		break;
	case X86_FLOW_CALL:
		put_push_address(writer, insn->address + insn->length);
		put_jump(writer, insn->target);
		break;
	case X86_FLOW_CALL_INDIRECT:
		put_push_address(writer, insn->address + insn->length);
		put_called(writer, insn, bytes);
		break;
	default:
		put_moved(writer, insn, bytes);
		break;
	}
}

/* ---- the window ------------------------------------------------------------------------------ */

static bool plan_is_sane(const struct kymo_plan *plan)
{
	unsigned int n = plan->n_insns + plan->n_copied;

	if (!plan->window || !plan->n_insns || n > KYMO_WINDOW_MAX_INSNS || plan->insn_offset[0] ||
	    plan->insn_offset[plan->n_insns] != plan->window)
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (plan->insn_offset[i] >= plan->insn_offset[i + 1])
			return false;
	}
	return plan->insn_offset[n] <= KYMO_WINDOW_MAX;
}

static int relocate_one(struct writer *writer, const struct kymo_plan *plan, const struct x86_insn *insn, uint64_t from)
{
	/* The bytes after the first are gone once the jump is written: nothing may go there, or read them. */
	bool last = insn->address + insn->length == from + plan->window, alone = plan->n_insns == 1 && !plan->n_copied;

	if ((alone ? x86_cannot_move_alone(insn) : x86_cannot_move(insn)) || x86_reads_code(insn, from, plan->window) ||
	    (x86_flow_is_call(insn->flow) && !last))
		return -ENOTSUP;
	if (insn->has_target && insn->target > from && insn->target - from < plan->window)
		return -ENOTSUP;
	put_insn(writer, insn, plan->original + (insn->address - from));
	return writer->err;
}

int kymo_relocate(const struct kymo_plan *plan, uint64_t from, uint64_t to, uint8_t *out, size_t size,
		  uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1])
{
	uint8_t bytes[KYMO_RELOCATED_MAX];
	struct writer writer = { .out = bytes, .size = size < sizeof(bytes) ? size : sizeof(bytes), .to = to };
	uint16_t at[KYMO_WINDOW_MAX_INSNS + 1] = { 0 };
	struct x86_insn insn = { .flow = X86_FLOW_NEXT };
	unsigned int n = plan->n_insns + plan->n_copied;
	ZydisDecoder decoder;
	int err;

	if (!plan_is_sane(plan))
		return -EINVAL;
	x86_decoder_init(&decoder);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int offset = plan->insn_offset[i], length = plan->insn_offset[i + 1] - offset;

		err = x86_decode_full(&decoder, plan->original + offset, length, from + offset, &insn);
		if (err || insn.length != length)
			return -EINVAL;
		at[i] = (uint16_t)writer.used;
		err = relocate_one(&writer, plan, &insn, from);
		if (err)
			return err;
	}
	at[n] = (uint16_t)writer.used;
	if (!x86_flow_ends(insn.flow) && !x86_flow_is_call(insn.flow))
		put_jump(&writer, from + plan->insn_offset[n]);
	if (writer.err)
		return writer.err;
	memcpy(out, bytes, writer.used);
	memcpy(insn_at, at, (n + 1) * sizeof(*at));
	return (int)writer.used;
}

int kymo_encode_jump(uint64_t from, uint64_t to, uint8_t out[KYMO_JUMP_SIZE])
{
	uint8_t bytes[KYMO_JUMP_SIZE];
	struct writer writer = { .out = bytes, .size = sizeof(bytes), .to = from };

	put_jump(&writer, to);
	if (!writer.err)
		memcpy(out, bytes, sizeof(bytes));
	return writer.err;
}

int x86_relocate_insn(const struct x86_insn *insn, const uint8_t *bytes, uint64_t to, uint8_t *out, size_t size)
{
	struct writer writer = { .out = out, .size = size, .to = to };

	put_insn(&writer, insn, bytes);
	return writer.err ? writer.err : (int)writer.used;
}
