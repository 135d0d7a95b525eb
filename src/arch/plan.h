/* Plans: how a probe can be put in, and code that runs elsewhere. code.h has the rules for all of it. */
#ifndef KYMO_ARCH_PLAN_H
#define KYMO_ARCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"

enum kymo_tactic {
	KYMO_TACTIC_NONE,
	KYMO_TACTIC_JUMP,   /* one instruction of five bytes or more becomes jmp rel32 */
	KYMO_TACTIC_GROUP,  /* several instructions are displaced together */
	KYMO_TACTIC_PUN,    /* one instruction becomes a jmp rel32 whose last bytes are the unchanged bytes that follow
			     */
	KYMO_TACTIC_PREFIX, /* the same, with redundant prefixes in front of the jump */
	KYMO_TACTIC_SUCCESSOR, /* a pun of its own displaces the next instruction first, so that other bytes follow */
	KYMO_TACTIC_NEIGHBOR,  /* a short jump to a jump in the bytes of an instruction near by, which a pun displaces
				  first */
	KYMO_N_TACTICS,
};

/* "jump", "group", "pun", "prefixed pun", "evicted successor", "evicted neighbor". Static. */
const char *kymo_tactic_name(enum kymo_tactic tactic);

#define KYMO_JUMP_SIZE 5   /* jmp rel32 */
#define KYMO_PATCH_MAX 15  /* the most bytes that are changed at one site: those of one instruction */
#define KYMO_WINDOW_MAX 24 /* the most bytes that are displaced */
#define KYMO_WINDOW_MAX_INSNS 5
#define KYMO_PLANS_MAX 2 /* for one probe */

/*
 * How a site is patched: which instructions run elsewhere, and what is written. Plain data; kymo_plan() makes it.
 *
 * `patch_size` bytes at `vaddr` are changed, in one write, and lie in one page. For a plain jump (jump, group) they are
 * the jump itself, and its target is chosen later. The tactics with puns need an address with the right bytes:
 * `trampoline`. A jmp rel32 to the pad must be there before the text is written. `patch` is known then.
 */
struct kymo_plan {
	enum kymo_tactic tactic;
	uint64_t vaddr; /* of the first displaced instruction; of the site */
	uint8_t window; /* bytes displaced: whole instructions */
	uint8_t n_insns;
	uint8_t n_copied; /* instructions after the window that stay; copies of them run before the jump back */
	uint8_t insn_offset[KYMO_WINDOW_MAX_INSNS + 1]; /* of each displaced instruction, of each copied one (`window`
							   for the first), then of the target of the jump back */
	uint8_t original[KYMO_WINDOW_MAX];              /* the file's bytes of all these and of the patch */
	uint8_t patch_size;
	uint8_t lock_size; /* bytes from `vaddr` that no other party may change while this is in: the jumps, the window,
			      and what is copied */
	uint8_t patch[KYMO_PATCH_MAX]; /* where `trampoline` is not 0 */
	uint64_t trampoline;           /* vaddr (modulo 2^64); 0: a plain jump */
	uint8_t faults;      /* KYMO_FAULT_…: faults that the displaced instructions may cause in a correct program */
	bool flags_are_dead; /* the site's code writes the arithmetic flags before it reads them */
	uint8_t scratch; /* the displaced instructions begin with a store of 8 bytes this far below the stack pointer,
			    and do not read them before; 0: not proven */
	bool is_evicted; /* no spec asks for a probe here: the instruction makes room for another plan's jump */
	bool ends_flow;  /* the last displaced or copied instruction never continues after itself at its new address: a
			    jump, a return, or a call */
};

/*
 * Faults that an instruction may cause in a correct program. The handler of such a fault may look its program counter
 * up, and finds the address of the displaced copy. Accesses to the stack, to the module's own data (RIP-relative), and
 * to thread-local storage by FS count as safe.
 */
#define KYMO_FAULT_MEMORY 1u      /* SIGSEGV or SIGBUS */
#define KYMO_FAULT_ARITHMETIC 2u  /* SIGFPE: a division, or floating-point numbers */
#define KYMO_FAULT_INSTRUCTION 4u /* SIGILL */
#define KYMO_FAULT_ANY 7u

/*
 * The rest of the module's text and its surroundings, as planning needs them: bytes that other plans have written or
 * rely on, and free addresses for trampolines. All functions get `data`; addresses are vaddr, modulo 2^64. They must
 * not call the planner.
 */
struct kymo_plan_room {
	void *data;
	/* `bytes` are the file's `size` bytes at `vaddr`. Set those that other plans have changed. */
	void (*look)(void *data, uint64_t vaddr, uint8_t *bytes, size_t size);
	/* Whether any of these bytes must not be changed: part of another plan's jump or window, or the start of an
	 * instruction for which another probe is requested. */
	bool (*is_locked)(void *data, uint64_t vaddr, size_t size);
	/* Whether a third party may change any of these bytes at any time (another recorder that turns a marker on): no
	 * pun may rely on them. */
	bool (*is_unsteady)(void *data, uint64_t vaddr, size_t size);
	/* Take `size` free bytes that begin in [low, high] (high >= low, the range may wrap around 0): their address,
	 * or 0. */
	uint64_t (*reserve)(void *data, uint64_t low, uint64_t high, size_t size);
	/* Give back what reserve() took for a plan that was dropped. */
	void (*release)(void *data, uint64_t vaddr, size_t size);
	/* KYMO_FAULT_…: faults that the process handles. No instruction that may cause one is displaced. */
	unsigned int watched_faults;
	/* Faults that it may handle later: no such instruction is displaced if another plain tactic (jump, group, pun)
	 * avoids it. */
	unsigned int possible_faults;
	/* Threads may return from earlier plans to any instruction: groups are not possible. */
	bool is_alone;
	/*
	 * Other tools set breakpoints at entries of functions, and remove them by writing the file's first byte
	 * (docs/internals/coexisting.md). Take the tactic there that conflicts least with that, even if it costs a
	 * trampoline.
	 */
	bool shares_entries;
	/* Bytes of the stack that pads take here beyond those of pads that read no memory (kymo_pad_reads_stack()). */
	uint32_t more_stack;
};

/* Why a tactic was not taken: one sentence, about `vaddr` if that is not 0. */
struct kymo_refusal {
	enum kymo_tactic tactic; /* NONE: the site itself is impossible */
	uint64_t vaddr;
	char reason[160];
};

/*
 * Plan a probe on the instruction at `vaddr`. An endbr64 must stay in place: a probe on one is planned on the next
 * instruction, and `ret->vaddr` is then after the endbr64. 0 and `ret`, or -EPERM when no tactic is proven safe.
 * `refusals` (room for KYMO_N_TACTICS, may be NULL) gets the tactics that were tried and why they were not taken, best
 * tactic first, also on success; `n_refusals` their number. The sentences use the file's addresses.
 *
 * Without a `room` the text has no other probes and there are no trampolines: only jump and group are tried. With one,
 * `ret` may get two plans (`n_ret`, room for KYMO_PLANS_MAX): that of an evicted instruction first, the site's last.
 * They are applied in this order and removed in reverse order. What was reserved for them stays reserved. Later plans
 * may rely on bytes of earlier ones, never the other way round. So text is written in the order of planning and
 * restored in reverse order.
 */
int kymo_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map, const struct kymo_plan_room *room,
	      uint64_t vaddr, struct kymo_plan ret[KYMO_PLANS_MAX], size_t *n_ret, struct kymo_refusal *refusals,
	      size_t *n_refusals);

/*
 * Complete a plan from elsewhere: `vaddr`, `window`, `original`, `patch_size` and `lock_size` are given, from a source
 * that is not trusted; the displaced instructions are found. -EINVAL when the window does not consist of whole
 * instructions that can be displaced, when `original` differs from the file, or a size is invalid.
 */
int kymo_plan_window(const struct kymo_entry_map *map, struct kymo_plan *plan);

/*
 * Whether a plan survives a uprobe of the kernel on its first byte. The kernel runs the file's instruction elsewhere
 * and continues after it; when the uprobe leaves, the kernel writes the file's first byte. SET: while the breakpoint is
 * there. GONE: also after it has left; all bytes are the file's then.
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
 * Write code to `out` that does at runtime address `to` what the window of `plan` does at `from`. It then continues
 * after the window: RIP-relative operands reach what they reached, calls push the original return address, branches are
 * widened. `insn_at[i]` is the offset in `out` of displaced or copied instruction i, with one more for the jump back.
 * Returns the size; -ERANGE when a target is out of reach from `to`, -ENOTSUP for an instruction that cannot run
 * elsewhere (kymo_plan() never lets one through), -ENOSPC.
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
