/*
 * Instructions, one at a time. Private to arch/x86_64.
 *
 * Zydis is included in this folder and nowhere outside of it. Names that cross files but not the folder start with
 * x86_.
 */
#ifndef KYMO_ARCH_X86_64_DECODE_H
#define KYMO_ARCH_X86_64_DECODE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where control goes after an instruction. */
enum x86_flow {
	X86_FLOW_NEXT,   /* to the next one only; system calls and int n are here */
	X86_FLOW_BRANCH, /* to `target` or the next one: jcc, loop, jrcxz, xbegin */
	X86_FLOW_JUMP,   /* to `target` only */
	X86_FLOW_CALL,   /* to `target`, and it comes back to the next one */
	X86_FLOW_JUMP_INDIRECT,
	X86_FLOW_CALL_INDIRECT,
	X86_FLOW_RETURN,
	X86_FLOW_STOP, /* nowhere that can be known: ud2, hlt, int3, far branches */
};

/* One decoded instruction at `address`. `op` is filled by x86_decode_full() alone. */
struct x86_insn {
	uint64_t address;
	uint8_t length;
	enum x86_flow flow;
	bool has_target; /* a direct branch */
	bool has_rip;    /* a RIP-relative memory operand or lea */
	uint64_t target; /* of the direct branch */
	uint64_t rip;    /* what the RIP-relative operand means */
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

void x86_decoder_init(ZydisDecoder *decoder);

/* Decode one instruction out of at most `size` bytes. -EINVAL when the bytes are none, or end before it does. */
int x86_decode(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size, uint64_t address, struct x86_insn *ret);
int x86_decode_full(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size, uint64_t address,
		    struct x86_insn *ret);

/* The same for direct branches as most are: without prefixes, and all there. False for everything else. Of `z` it fills
 * the size of the immediate alone. */
bool x86_decode_near(const uint8_t *bytes, size_t size, uint64_t address, struct x86_insn *ret);

/* Whether an instruction with this flow never goes on to the one after it. Calls do, after they have returned. */
static inline bool x86_flow_ends(enum x86_flow flow)
{
	return flow == X86_FLOW_JUMP || flow == X86_FLOW_JUMP_INDIRECT || flow == X86_FLOW_RETURN ||
	       flow == X86_FLOW_STOP;
}

static inline bool x86_flow_is_call(enum x86_flow flow)
{
	return flow == X86_FLOW_CALL || flow == X86_FLOW_CALL_INDIRECT;
}

/* Whether it is RIP-relative lea. */
bool x86_is_rip_lea(const struct x86_insn *insn);

/* Whether a 66 prefix on this near branch makes AMD and Intel processors disagree about what it does. */
bool x86_is_branch16(const struct x86_insn *insn);

/* 0 for rax … 15 for r15 in any width, or -1. */
int x86_gpr(ZydisRegister reg);

/* Whether it writes `reg` (of x86_gpr()), as a named operand or not. Decoded in full. */
bool x86_writes(const struct x86_insn *insn, int reg);

/* A displacement or an immediate. */
static inline int32_t x86_read32(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

#endif
