/* The analysis of a function for its clone. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_H
#define KYMO_ARCH_X86_64_CLONE_H

#include <Zydis/Zydis.h>

#include "arch/clone.h"
#include "base/vec.h"

struct x86_insn;

#define X86_ALL_REGISTERS 0xffffu
#define X86_NO_REGISTER 16
#define X86_VOLATILE 0x0fc7u /* those that calls clobber: rax, rcx, rdx, rsi, rdi, r8 to r11 */

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
	uint16_t stretch;                               /* that it is in: one more than its index; 0: none */
	uint8_t length;
	uint8_t flow;     /* enum x86_flow */
	uint8_t weight;   /* how often it runs, as loops tell */
	bool is_site;     /* recorded */
	bool stays_in;    /* an indirect jump inside of the function */
	bool is_tabled;   /* one that leads to one of the clone's `targets` */
	uint8_t scratch;  /* of a tabled one: a register that no target reads, and that is not held */
	bool is_in_place; /* not moved: the clone jumps to the function's own */
	bool is_unlocked; /* the same instruction after its lock prefix */
};

/* A loop in which one register has the position all the time. */
struct x86_clone_stretch {
	uint8_t reg;
	bool pushes; /* what the function has in it is kept on the stack */
};

struct kymo_clone {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	ZydisDecoder decoder;
	struct kymo_extent parts[16];
	size_t n_parts;
	KYMO_VEC(struct x86_clone_insn) insns; /* sorted by vaddr */
	KYMO_VEC(uint64_t) sites;
	KYMO_VEC(struct x86_clone_stretch) stretches;
	KYMO_VEC(uint64_t) targets; /* of tabled jumps, sorted: sites with room for a jump to the next one */
	KYMO_VEC(struct kymo_catch) catches;
	KYMO_VEC(struct kymo_clone_step) steps; /* clone_order.c */
	size_t n_uncaught;
	bool is_shared;  /* other functions jump into its middle */
	bool is_blurred; /* what runs in place after one that was left out reaches another catch */
	int held;        /* the register that has the position where it is free, or X86_NO_REGISTER */
};

/* Up to two instructions that control may be at next by the function's own ways, -1: it leaves; how many. */
int x86_clone_next(const struct x86_clone_insn *insn, int32_t ret[2]);

/* Index of the instruction at `vaddr`, or -1. */
int32_t x86_clone_find(const struct kymo_clone *clone, uint64_t vaddr);

/* Decode it in full at its runtime address; `bytes_ret` are its bytes in the file. */
int x86_clone_decode(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint64_t bias,
		     struct x86_insn *ret, const uint8_t **bytes_ret);

#endif
