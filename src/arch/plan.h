/* Plans: how a probe can be put in, and code that runs elsewhere. What holds for all of it is told in code.h. */
#ifndef KYMO_ARCH_PLAN_H
#define KYMO_ARCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"

enum kymo_tactic {
	KYMO_TACTIC_NONE,
	KYMO_TACTIC_JUMP,  /* one instruction of five bytes or more becomes jmp rel32 */
	KYMO_TACTIC_GROUP, /* several are displaced together */
	KYMO_TACTIC_PUN, /* one instruction becomes a jmp rel32 the last bytes of which are those that follow, unchanged
			  */
	KYMO_TACTIC_PREFIX,    /* the same, with redundant prefixes in front of the jump */
	KYMO_TACTIC_SUCCESSOR, /* the next instruction is displaced by a pun of its own first, so that other bytes
				  follow */
	KYMO_TACTIC_NEIGHBOR,  /* a short jump to a jump in the bytes of an instruction near by, which is displaced by a
				   pun first */
	KYMO_N_TACTICS,
};

/* "jump", "group", "pun", "prefixed pun", "evicted successor", "evicted neighbor". Static. */
const char *kymo_tactic_name(enum kymo_tactic tactic);

#define KYMO_JUMP_SIZE 5   /* jmp rel32 */
#define KYMO_PATCH_MAX 15  /* bytes changed at one site at the most: those of one instruction */
#define KYMO_WINDOW_MAX 24 /* bytes displaced at the most */
#define KYMO_WINDOW_MAX_INSNS 5
#define KYMO_PLANS_MAX 2 /* for one probe */

/*
 * How a site is taken over: which instructions run elsewhere, and what is written. Plain data; produced by
 * kymo_plan().
 *
 * `patch_size` bytes at `vaddr` are changed, in one write, and lie in one page. For a plain jump (jump, group) they are
 * the jump itself, and what it leads to is chosen later. The tactics with puns need an address that has the right
 * bytes: `trampoline`, where a jmp rel32 to the pad must be before anything is written; `patch` is known then.
 */
struct kymo_plan {
	enum kymo_tactic tactic;
	uint64_t vaddr; /* of the first displaced instruction; of the site */
	uint8_t window; /* bytes displaced: whole instructions */
	uint8_t n_insns;
	uint8_t n_copied; /* instructions behind the window which stay, and of which copies run before going back */
	uint8_t insn_offset[KYMO_WINDOW_MAX_INSNS + 1]; /* of each displaced instruction, of each copied one (`window`
							   for the first), then where to go back to */
	uint8_t original[KYMO_WINDOW_MAX];              /* of all these and of what is patched: bytes from the file */
	uint8_t patch_size;
	uint8_t lock_size; /* bytes from `vaddr` that nobody else may change while this is in: those that jumps are made
			      of, the window, and what is copied */
	uint8_t patch[KYMO_PATCH_MAX]; /* where `trampoline` is not 0 */
	uint64_t trampoline;           /* vaddr (modulo 2^64); 0: a plain jump */
	uint8_t faults;      /* KYMO_FAULT_…: what the displaced instructions may cause in a sound program */
	bool flags_are_dead; /* the site's code writes the arithmetic flags before it reads them */
	uint8_t scratch; /* the displaced instructions begin by storing 8 bytes this far below the stack pointer, and
			    read nothing there before; 0: not proven */
	bool is_evicted; /* nobody asked for a probe here: the instruction makes room for another plan's jump */
	bool ends_flow;  /* the last displaced or copied instruction never goes on behind itself
			  * from where it is displaced to: a jump, a return, or a call */
};

/*
 * What an instruction may do in a sound program other than what it is there for. The handler of such a fault may look
 * its program counter up, and finds the address of the displaced copy. Accesses to the stack, to the module's own data
 * (RIP-relative), and to thread-local storage by FS are taken for sound.
 */
#define KYMO_FAULT_MEMORY 1u      /* SIGSEGV or SIGBUS */
#define KYMO_FAULT_ARITHMETIC 2u  /* SIGFPE: a division, or floating-point numbers */
#define KYMO_FAULT_INSTRUCTION 4u /* SIGILL */
#define KYMO_FAULT_ANY 7u

/*
 * What else is in the module's text and around it, as far as planning cares: bytes that other plans have written or
 * rely on, and addresses that are free for trampolines. All functions get `data`; addresses are vaddr, modulo 2^64.
 * They may not call back into the planner.
 */
struct kymo_plan_room {
	void *data;
	/* Change those of the `size` bytes at `vaddr` (given as the file has them) that other plans have changed. */
	void (*look)(void *data, uint64_t vaddr, uint8_t *bytes, size_t size);
	/* Whether any of these bytes must not be changed: part of another plan's jump or window, or the start of an
	 * instruction that another probe is wanted on. */
	bool (*is_locked)(void *data, uint64_t vaddr, size_t size);
	/* Whether any of these bytes may be changed by somebody else at any time (another recorder, who turns a marker
	 * on): no pun may rely on them. */
	bool (*is_unsteady)(void *data, uint64_t vaddr, size_t size);
	/* Take `size` free bytes that begin in [low, high] (high >= low, the range may wrap around 0): their address,
	 * or 0. */
	uint64_t (*reserve)(void *data, uint64_t low, uint64_t high, size_t size);
	/* Give back what was taken by reserve() for a plan that did not come to be. */
	void (*release)(void *data, uint64_t vaddr, size_t size);
	/* KYMO_FAULT_…: what the process handles. No instruction that may cause it is displaced. */
	unsigned int watched_faults;
	/* What it may come to handle: no such instruction is displaced where another plain tactic (jump, group, pun)
	 * does without. */
	unsigned int possible_faults;
	/* Threads may be on their way back from earlier plans, to any instruction: no group. */
	bool is_alone;
	/*
	 * Where a function is entered other tools set breakpoints, as the file's first byte, and take them out by that
	 * byte (docs/internals/coexisting.md): take the tactic there of which the fewest bytes are in the way of that,
	 * also if it costs a trampoline.
	 */
	bool shares_entries;
	/* Bytes of the stack that pads take here, more than those that read no memory (kymo_pad_reads_stack()). */
	uint32_t more_stack;
};

/* Why a tactic was not taken: one sentence, about `vaddr` where that is not 0. */
struct kymo_refusal {
	enum kymo_tactic tactic; /* NONE: the site itself is impossible */
	uint64_t vaddr;
	char reason[160];
};

/*
 * Plan a probe on the instruction at `vaddr`. An endbr64 has to stay where it is: a probe on one is planned on what
 * follows, `ret->vaddr` is then behind it. 0 and `ret`, or -EPERM when no tactic is proven safe. `refusals` (room
 * for KYMO_N_TACTICS, may be NULL) gets what was tried and why not, best tactic first, also on success; `n_refusals`
 * their number. The sentences use addresses as the file has them.
 *
 * Without a `room` there is nothing else in the text and no place for trampolines: jump and group alone are tried. With
 * one, `ret` may get two plans (`n_ret`, room for KYMO_PLANS_MAX): an evicted instruction's first, the site's last;
 * they are put in in this order and taken out in the other. Whatever was reserved for them stays reserved. Plans made
 * later may rely on bytes of earlier ones, never the other way round: so text is written in the order of planning and
 * restored in the reverse.
 */
int kymo_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_plan_room *room,
	      uint64_t vaddr, struct kymo_plan ret[KYMO_PLANS_MAX], size_t *n_ret, struct kymo_refusal *refusals,
	      size_t *n_refusals);

/*
 * Complete a plan that somebody else made: `vaddr`, `window`, `original`, `patch_size` and `lock_size` are given, from
 * a source that is not trusted; the displaced instructions are found. -EINVAL when the window is not made of whole
 * instructions that can be displaced, when `original` is not what the file has, or a size can't be.
 */
int kymo_plan_window(const struct kymo_entry_map *map, struct kymo_plan *plan);

/*
 * How a plan bears a uprobe of the kernel's on its first byte. The kernel runs the file's instruction elsewhere and
 * goes on behind it; when it leaves, it writes the file's first byte. SET: while the breakpoint is there. GONE: also
 * when it has left; the file's bytes are all there then.
 */
enum kymo_bearing {
	KYMO_BEARS_NOTHING,
	KYMO_BEARS_SET,
	KYMO_BEARS_GONE,
};

/* Pure. */
enum kymo_bearing kymo_plan_bears(const struct kymo_plan *plan);

/* ---- moving code ----------------------------------------------------------------------------- */

/* Upper bound of what kymo_relocate() makes of one window. */
#define KYMO_RELOCATED_MAX 192

/*
 * Write code to `out` that does at runtime address `to` what the window of `plan` does at runtime address `from`, and
 * then continues after the window: RIP-relative operands reach what they reached, calls push the original return
 * address, branches are widened. `insn_at[i]` is the offset in `out` of displaced or copied instruction i, with one
 * more for the jump back. Returns the size; -ERANGE when a target is out of reach from `to`, -ENOTSUP for an
 * instruction that cannot run elsewhere (kymo_plan() never lets one through), -ENOSPC.
 */
int kymo_relocate(const struct kymo_plan *plan, uint64_t from, uint64_t to, uint8_t *out, size_t size,
		  uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1]);

/* The bytes of a jump from `from` to `to`. -ERANGE beyond ±2 GiB. */
int kymo_encode_jump(uint64_t from, uint64_t to, uint8_t out[KYMO_JUMP_SIZE]);

/* Where the jump whose bytes are at `from` leads; 0 when they are no jmp rel32. */
uint64_t kymo_jump_target(uint64_t from, const uint8_t bytes[KYMO_JUMP_SIZE]);

#define KYMO_SHORT_JUMP_SIZE 2

/* The same of a jmp rel8. */
uint64_t kymo_short_jump_target(uint64_t from, const uint8_t bytes[KYMO_SHORT_JUMP_SIZE]);

#endif
