/* The analysis of a function for its clone. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_H
#define KYMO_ARCH_X86_64_CLONE_H

#include <Zydis/Zydis.h>

#include "arch/clone.h"
#include "base/vec.h"

struct x86_insn;

#define X86_ALL_REGISTERS 0xffffu
#define X86_NO_REGISTER 16

/* An instruction of the function. Masks have a bit for each general register. */
struct x86_clone_insn {
	uint64_t vaddr, target; /* of a direct branch, or 0 */
	int32_t next, to;       /* indexes of the next one and of the target; -1: not in the function */
	uint16_t reads;
	uint16_t writes;                                /* whole */
	uint16_t clobbers;                              /* in part, or perhaps */
	uint16_t named;                                 /* of these, by an operand that is written out */
	uint16_t live;                                  /* before it: may be read */
	uint16_t flags_read, flags_written, flags_live; /* in masks of eflags; live: before it */
	uint8_t length;
	uint8_t flow;     /* enum x86_flow */
	uint8_t weight;   /* how often it runs, as loops tell */
	bool is_site;     /* recorded */
	bool stays_in;    /* an indirect jump inside of the function */
	bool is_in_place; /* not moved: the clone jumps to the function's own */
	bool is_unlocked; /* the same instruction after its lock prefix */
};

struct kymo_clone {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	struct kymo_extent parts[16];
	size_t n_parts;
	KYMO_VEC(struct x86_clone_insn) insns; /* sorted by vaddr */
	KYMO_VEC(uint64_t) sites;
	KYMO_VEC(struct kymo_catch) catches;
	size_t n_uncaught;
	bool is_shared;  /* other functions jump into its middle */
	bool is_blurred; /* what runs in place after one that was left out reaches another catch */
	int held;        /* the register that has the position where it is free, or X86_NO_REGISTER */
};

/* Index of the instruction at `vaddr`, or -1. */
int32_t x86_clone_find(const struct kymo_clone *clone, uint64_t vaddr);

/* Decode it in full at its runtime address; `bytes_ret` are its bytes in the file. */
int x86_clone_decode(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint64_t bias,
		     struct x86_insn *ret, const uint8_t **bytes_ret);

#endif
