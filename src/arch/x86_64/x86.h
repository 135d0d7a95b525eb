/*
 * What the files of this folder share. Zydis is included here and nowhere outside of the folder.
 *
 * Names that cross files but not the room start with x86_.
 */
#ifndef KYMO_ARCH_X86_64_X86_H
#define KYMO_ARCH_X86_64_X86_H

#include <Zydis/Zydis.h>

#include "arch/arch.h"

/* ---- decode.c -------------------------------------------------------------------------------- */

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

/* ---- entries.c, marks.c ---------------------------------------------------------------------- */

/* A text section in the map. Bit `base` of each bitmap stands for its first byte. */
struct x86_area {
	struct kymo_span span;
	uint64_t base;
};

#define X86_SEVERAL UINT32_MAX

/* What is known about a function besides its extent; kept in the order of kymo_module_code.functions. */
struct x86_function {
	uint64_t bad;      /* where it does not decode, or where it is entered inside of an instruction; 0: nowhere */
	uint64_t computed; /* an indirect jump that may lead anywhere into it; 0: none */
	uint64_t own_address; /* an instruction that takes an address inside of the function itself; 0: none */
	uint32_t n_tables;    /* jump tables whose address it takes */
	uint32_t jumped_from; /* 1 + the index of the only other function that jumps into it; 0: none; or X86_SEVERAL */
	uint32_t entered_from; /* the same, of jumps and calls to behind its start */
	bool called;           /* or its address taken by another function */
	bool decodes;          /* false: `bad` is where it does not */
};

/* What a function that runs on a small stack does with it. */
struct x86_stack {
	uint64_t passed, fails; /* behind its look at the limit, and where that leads when there is too little; 0: it
				   does not look */
	uint16_t depth;         /* how far below a limit that was kept its return address may lie */
	uint16_t taken;         /* at the most, by all of it, or by what is from `fails` on */
	bool begins_anew;       /* something in it jumps to its start */
};

/* One bit for each byte of text. entries.c tells what each means and why that many are needed. */
enum x86_bitmap {
	X86_KNOWN,
	X86_FIRM,
	X86_LIKELY,
	X86_SCANNED,
	X86_STARTS,
	X86_STOPS,
	X86_READ,
	X86_N_BITMAPS,
};

struct kymo_entry_map {
	struct x86_area *areas; /* sorted by address, not overlapping */
	size_t n_areas;
	uint64_t low, high; /* of all areas */
	struct x86_function *functions;
	struct x86_stack *stacks;          /* as `functions`; NULL where all stacks are large */
	const struct kymo_extent *extents; /* of the functions; the caller's */
	size_t n_functions;
	uint64_t *tables; /* addresses of jump tables that a jump was seen to use, sorted */
	size_t n_tables;
	uint64_t n_bits;
	uint64_t *bits[X86_N_BITMAPS];
};

/* A map of the module that has areas, functions and empty bitmaps. -ENOMEM; -EINVAL as kymo_entry_map_create() has it.
 */
int x86_entry_map_begin(const struct kymo_module_code *code, struct kymo_entry_map **ret);

/* The area that holds `vaddr`, or NULL. */
const struct x86_area *x86_area_at(const struct kymo_entry_map *map, uint64_t vaddr);

/* Bytes of text at `vaddr`, and in `size_ret` how many there are; NULL outside of the text. */
const uint8_t *x86_text_at(const struct kymo_entry_map *map, uint64_t vaddr, size_t *size_ret);

bool x86_test(const struct kymo_entry_map *map, enum x86_bitmap which, uint64_t vaddr);
void x86_mark(struct kymo_entry_map *map, enum x86_bitmap which, uint64_t vaddr); /* outside of the text: nothing */
void x86_mark_entered(struct kymo_entry_map *map, uint64_t vaddr);                /* known, and firmly */

/* The last address in [low, high] (of one area) with a bit in any of the bitmaps of `mask`, or UINT64_MAX. */
uint64_t x86_last(const struct kymo_entry_map *map, unsigned int mask, uint64_t low, uint64_t high);

/* Index of the function that contains `vaddr`, or -1. */
ptrdiff_t x86_function_at(const struct kymo_module_code *code, uint64_t vaddr);

/* ---- gaps.c ---------------------------------------------------------------------------------- */

/* Text that is in no function. */
struct x86_gap {
	uint64_t low, high;
	uint8_t *is_code; /* for each address from `low` on: an instruction that control may arrive at; to be freed */
};

/* The gap that `vaddr`, which is in `span` and in no function, is in. -ENOMEM. */
int x86_gap_at(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_span *span,
	       uint64_t vaddr, struct x86_gap *ret);

/* ---- stacks.c -------------------------------------------------------------------------------- */

/* Whether function `function` runs on a small stack. */
bool x86_has_small_stack(const struct kymo_module_code *code, size_t function);

/* ---- jumps.c --------------------------------------------------------------------------------- */

/* The search for where indirect jumps lead. `has_table` tells whether a jump table begins at an address. */
struct x86_jumps {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	bool (*has_table)(void *closure, uint64_t vaddr);
	void *closure;
	ptrdiff_t summary_of;        /* the function that the two below describe, or -1 */
	uint32_t summary_bad;        /* registers that somewhere get something that was computed */
	uint32_t summary_copies[16]; /* registers that each is somewhere copied from */
};

/* Whether the targets of the indirect jump or call at `vaddr` of function `index` are all in the map already, as far as
 * the code shows. */
bool x86_jump_is_understood(struct x86_jumps *jumps, size_t index, uint64_t vaddr);

/* Whether the indirect jump uses a relative table whose address is taken in sight: `ret`. */
bool x86_jump_table(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *ret);

/* Whether it is jmp *T(,%reg,8) in a module that cannot move, which has addresses at T. */
bool x86_jump_absolute(const struct x86_jumps *jumps, uint64_t vaddr, uint64_t *ret);

/* Whether it goes to the sum of an entry of the table at `table_ret` and another address, `base_ret`, both taken in
 * sight. */
bool x86_jump_rebased(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *table_ret,
		      uint64_t *base_ret);

/* Whether it goes to the sum of an address and a 32-bit entry of what lies there, wherever that address comes from: a
 * relative table. */
bool x86_jump_adds(const struct x86_jumps *jumps, size_t index, uint64_t vaddr);

/* ---- relocate.c ------------------------------------------------------------------------------ */

/* Why the instruction (decoded in full) cannot run at another address: the rest of a sentence that begins with the
 * instruction; NULL when it can. */
const char *x86_cannot_move(const struct x86_insn *insn);

/* The same where nothing is displaced with it, so that its first byte stays the start of what is run there. */
const char *x86_cannot_move_alone(const struct x86_insn *insn);

/* Whether its RIP-relative operand lies in the `size` bytes at `low`, or close before them. */
bool x86_reads_code(const struct x86_insn *insn, uint64_t low, uint64_t size);

#endif
