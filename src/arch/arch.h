/*
 * What an architecture gives to the rest: the contract between the half that knows processes and the half that knows
 * opcodes. Everything here is a pure function of bytes and addresses: no system calls, no processes, no files.
 *
 * Two kinds of address:
 *   vaddr	as linked, the addresses of the ELF file; planning uses only these
 *   runtime	where something is in the target: vaddr + the module's bias; emitting uses these
 *
 * Functions return 0 or a negative errno unless told otherwise, and allocate only where a name ends in _create.
 * None is signal safe; all are thread safe on different objects.
 */
#ifndef KYMO_ARCH_ARCH_H
#define KYMO_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/form.h"
#include "wire/types.h"

/* ---- code as a planner sees it --------------------------------------------------------------- */

/* A run of bytes of a module and its vaddr. The bytes belong to the caller. */
struct kymo_span {
	uint64_t vaddr;
	const uint8_t *bytes;
	size_t size;
};

/* One function, [start, end) in vaddr. */
struct kymo_extent {
	uint64_t start, end;
};

/*
 * Everything about a module that tells where control can enter other than by falling through from the instruction
 * before. `functions` is sorted by start and does not overlap. All arrays belong to the caller and must outlive the
 * map built from them.
 */
struct kymo_module_code {
	const struct kymo_span *text; /* executable sections */
	size_t n_text;
	const struct kymo_span *data; /* initialised sections that are not executable: jump tables, pointers */
	size_t n_data;
	const struct kymo_extent *functions;
	size_t n_functions;
	const uint64_t *entries; /* known ones: symbols, landing pads, relocation addends, the ELF entry */
	size_t n_entries;
	const struct kymo_extent *rseq; /* restartable sequences of the module itself; nothing is put there */
	size_t n_rseq;
	struct kymo_extent
		small_stacks; /* functions that begin in here run on stacks that they let grow (Go's); empty: none do */
	uint32_t small_stacks_left; /* bytes of such a stack, at most 4096, below the frame of a function that has
				       looked whether it has to grow */
	bool position_independent;  /* false: absolute addresses in data may be code pointers without a relocation */
	bool is_made; /* a program has made it while it runs: nothing is known of who enters it where, and the program
			 may change what it is used to change */
};

/*
 * The set of addresses of a module at which control may arrive. It is a superset: each direct branch of each function,
 * each code address taken, each jump-table entry, each entry handed in.
 */
struct kymo_entry_map;

/* Build the map: decodes all of the text once. -ENOMEM; -EINVAL where sections overlap or functions are empty or out of
 * order; -EFBIG for a module made so that its jump tables would take for ever. */
int kymo_entry_map_create(const struct kymo_module_code *code, struct kymo_entry_map **ret);
void kymo_entry_map_destroy(struct kymo_entry_map *map);

/* The map as bytes, a fresh array that the caller frees; -ENOMEM. They are for this very build of kymo. */
int kymo_entry_map_pack(const struct kymo_entry_map *map, void **ret, size_t *size_ret);

/* The map that these bytes were made of, for the same module. -EINVAL for bytes of another module, or damaged ones
 * where that shows; -ENOMEM. The caller vouches for the rest: a map that is wrong makes plans that are wrong. */
int kymo_entry_map_unpack(const struct kymo_module_code *code, const void *bytes, size_t size,
			  struct kymo_entry_map **ret);

/* Whether control may arrive at exactly `vaddr`. True for addresses outside of the text. */
bool kymo_entry_map_has(const struct kymo_entry_map *map, uint64_t vaddr);

/* ---- plans ----------------------------------------------------------------------------------- */

enum kymo_tactic {
	KYMO_TACTIC_NONE,
	KYMO_TACTIC_JUMP,  /* one instruction of five bytes or more becomes jmp rel32 */
	KYMO_TACTIC_GROUP, /* several are displaced together */
	KYMO_TACTIC_PUN, /* one instruction becomes a jmp rel32 the last bytes of which are those that follow, unchanged
			  */
	KYMO_TACTIC_PREFIX,    /* the same, with redundant prefixes in front of the jump */
	KYMO_TACTIC_SUCCESSOR, /* the next instruction is displaced by a pun of its own first, so that other bytes
				  follow */
	KYMO_TACTIC_NEIGHBOUR, /* a short jump to a jump in the bytes of an instruction near by, which is displaced by a
				  pun first */
	KYMO_N_TACTICS,
};

/* "jump", "group", "pun", "prefixed pun", "evicted successor", "evicted neighbour". Static. */
const char *kymo_tactic_name(enum kymo_tactic tactic);

#define KYMO_JUMP_SIZE 5   /* jmp rel32 */
#define KYMO_PATCH_MAX 15  /* bytes changed at one place at the most: those of one instruction */
#define KYMO_WINDOW_MAX 24 /* bytes displaced at the most */
#define KYMO_WINDOW_MAX_INSNS 5
#define KYMO_PLANS_MAX 2 /* for one probe */

/*
 * How a place is taken over: which instructions run elsewhere, and what is written. Plain data; produced by
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

/* Where a probe on `vaddr` really goes: behind an endbr64, which stays, or `vaddr` itself. kymo_plan() does the same.
 */
uint64_t kymo_site_of(const struct kymo_entry_map *map, uint64_t vaddr);

/* ---- leaving a function ---------------------------------------------------------------------- */

/* An instruction by which a function is left for good. */
struct kymo_exit {
	uint64_t vaddr;
	uint64_t target; /* of a direct tail jump; 0: a return, or an indirect jump */
	bool is_tail;    /* a jump to another function: what is returned is not known yet */
};

/*
 * All exits of a function that is made of `parts` (the first is where it is entered; others are what the compiler split
 * off, such as "f.cold"). 0, or -EPERM and the reason when one can't be told: an indirect jump that is neither a table
 * nor a tail call for certain, a conditional jump out of the function, a part that does not decode. A function that
 * never returns has 0 exits. `ret` is a fresh array that the caller frees.
 */
int kymo_exits_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		      const struct kymo_extent *parts, size_t n_parts, struct kymo_exit **ret, size_t *n_ret,
		      struct kymo_refusal *refusal);

/* The start of every instruction in [low, high) of one function, as the sweep from its start sees them; a fresh array.
 * -EPERM where the function does not decode. */
int kymo_instructions_create(const struct kymo_entry_map *map, uint64_t low, uint64_t high, uint64_t **ret,
			     size_t *n_ret);

/* Whether something is known to lead to the instruction at `vaddr`, one of those; else it may be data. */
bool kymo_is_reached(const struct kymo_entry_map *map, uint64_t vaddr);

/* Whether an instruction is known to read some of the `size` bytes at `vaddr`, all in text. */
bool kymo_is_read(const struct kymo_entry_map *map, uint64_t vaddr, size_t size);

/* ---- system calls ---------------------------------------------------------------------------- */

/* A `syscall` instruction, or bytes that may be one. */
struct kymo_syscall_place {
	uint64_t vaddr;
	int32_t number;     /* of the only call that is made there; -1: not known */
	const char *reason; /* why nothing may be put there; NULL: kymo_plan() says whether it can */
};

/* All of a module, by address; a fresh array. -ENOMEM. */
int kymo_syscall_places_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
			       struct kymo_syscall_place **ret, size_t *n_ret);

/* ---- indirect functions ---------------------------------------------------------------------- */

/*
 * What the resolver of an indirect function (IFUNC), which begins at `vaddr`, can return: the starts of functions of
 * the module, at least one, sorted; a fresh array that the caller frees. -EPERM and the reason (the rest of a sentence
 * about the resolver) where it may return something else, or does not show what. `constant` tells the word at an
 * address that nothing but relocation ever writes, as it is when the module is loaded at 0; false for other addresses.
 */
int kymo_resolver_create(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr,
			 bool (*constant)(void *data, uint64_t vaddr, uint64_t *ret), void *data, uint64_t **ret,
			 size_t *n_ret, struct kymo_refusal *refusal);

/* One line of text for the instruction at `bytes` (Intel syntax), for `kymo explain`. Returns its length in bytes,
 * or -EINVAL when it does not decode; `text` is "(bad)" then. */
int kymo_disassemble(const uint8_t *bytes, size_t size, uint64_t address, char *text, size_t text_size);

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

/* ---- arguments ------------------------------------------------------------------------------- */

enum kymo_fetch_kind {
	KYMO_FETCH_REGISTER, /* value: register number of kymo_register_parse() */
	KYMO_FETCH_ARGUMENT, /* value: 1 for the function's first; only right at a function entry */
	KYMO_FETCH_STACK,    /* value: N, the 8 bytes at stack pointer + 8 * N */
	KYMO_FETCH_STACK_POINTER,
	KYMO_FETCH_IMMEDIATE, /* value: itself */
	KYMO_FETCH_RETVAL, /* what a function returns; at an exit that is no tail jump; value: 1 where it is one and not
			      known: (fault) */
	KYMO_FETCH_MEMORY, /* the operand value(base,index,scale): read where it can be read for certain, as the stack
			      is; else (fault) */
	KYMO_FETCH_GLOBAL, /* value: vaddr in the data of the module whose text the site is in; the caller knows that it
			      is mapped */
	KYMO_FETCH_PAYLOAD, /* all arguments at once, as a record has them: `value` is the register with their address,
			     * `index` the one with their size in bytes (at most KYMO_PAYLOAD_MAX, else nothing is
			     * recorded and a loss is counted). The only one of its event. */
	KYMO_FETCH_COPY, /* a copy of the stack, with type BYTES: struct kymo_wire_stack, and up to `limit` bytes from
			  * the stack pointer on, as far as they can be read for certain. The last one of its event */
	KYMO_FETCH_FORM, /* what `form` computes; value: 1 where what the function returns is not known there. With
			  * type STRING or BYTES that is the address of memory: a string up to its NUL, `limit` bytes */
};

struct kymo_fetch {
	enum kymo_fetch_kind kind;
	enum kymo_type type; /* of PAYLOAD: KYMO_TYPE_STRING */
	int64_t value;
	/* of MEMORY: register numbers, -1 for none. Of PAYLOAD: `index`; and `base`, a register that has to have the
	 * same address, or -1 */
	int8_t base, index;
	uint8_t scale;                /* 1, 2, 4, 8 */
	const struct kymo_form *form; /* of FORM, for general registers; belongs to the caller */
	uint16_t limit; /* of FORM with STRING: the most bytes of it, without its NUL; with BYTES: as many. Of COPY: the
			   most bytes of the stack */
};

#define KYMO_PAYLOAD_MAX 4096
#define KYMO_FETCH_LIMIT_MAX 512
#define KYMO_FETCH_COPY_MAX (32u << 10)
#define KYMO_FETCH_LIMIT 128 /* of strings, where nobody says another one */

/* What a string that is longer than its limit ends with in a record, behind the limit's bytes: U+2026 in UTF-8. So a
 * string of more bytes than its limit is one that was cut. */
#define KYMO_STRING_CUT "\xe2\x80\xa6"

/* Whether a FORM's value is the address of what is recorded. */
static inline bool kymo_fetch_is_of_memory(const struct kymo_fetch *fetch)
{
	return fetch->kind == KYMO_FETCH_FORM && (fetch->type == KYMO_TYPE_STRING || fetch->type == KYMO_TYPE_BYTES);
}

#define KYMO_FETCH_REGISTERS 16  /* general ones, which a form may have */
#define KYMO_FETCH_STACK_MAX 255 /* of KYMO_FETCH_STACK; ARGUMENT n is n <= 6, or stack n - 6 */

/* Number of the register named by the `length` bytes at `name` ("di", "rdi", "edi", "r8", "ip", "flags" …), or -1;
 * `type_ret` gets the width that the name implies ("di" and "rdi" KYMO_TYPE_X64 as in the kernel's grammar,
 * "edi" KYMO_TYPE_X32). */
int kymo_register_parse(const char *name, size_t length, enum kymo_type *type_ret);

/* Number of the register that DWARF has the number `dwarf` for, or -1: only general ones have one. */
int kymo_register_of_dwarf(int dwarf);

/* The name of a general register, "di" for 7. Static. */
const char *kymo_register_name(int number);

#define KYMO_STACK_POINTER 4 /* its number */

/* The operation of a form that gives argument `n` (from 1) of a function where that is entered. -EINVAL: there is none
 * of that number. */
int kymo_argument_operation(unsigned int n, struct kymo_form_op *ret);

#endif
