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

#include "wire/types.h"

/* ---- code as a planner sees it ------------------------------------------------------------------------------- */

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
	const struct kymo_span *text;	/* executable sections */
	size_t n_text;
	const struct kymo_span *data;	/* initialised sections that are not executable: jump tables, pointers */
	size_t n_data;
	const struct kymo_extent *functions;
	size_t n_functions;
	const uint64_t *entries;	/* known ones: symbols, landing pads, relocation addends, the ELF entry */
	size_t n_entries;
	const struct kymo_extent *rseq;	/* restartable sequences of the module itself; nothing is put there */
	size_t n_rseq;
	bool position_independent;	/* false: absolute addresses in data may be code pointers without a relocation */
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

/* Whether control may arrive at exactly `vaddr`. True for addresses outside of the text. */
bool kymo_entry_map_has(const struct kymo_entry_map *map, uint64_t vaddr);

/* ---- plans --------------------------------------------------------------------------------------------------- */

enum kymo_tactic {
	KYMO_TACTIC_NONE,
	KYMO_TACTIC_JUMP,	/* one instruction of five bytes or more becomes jmp rel32 */
	KYMO_TACTIC_GROUP,	/* several are displaced together */
	KYMO_N_TACTICS,
};

/* "jump", "group". Static. */
const char *kymo_tactic_name(enum kymo_tactic tactic);

#define KYMO_PATCH_SIZE 5	/* bytes written at a site */
#define KYMO_WINDOW_MAX 24	/* bytes displaced at the most */
#define KYMO_WINDOW_MAX_INSNS 5

/* How a site is taken over. Plain data; produced by kymo_plan(). */
struct kymo_plan {
	enum kymo_tactic tactic;
	uint64_t vaddr;				/* of the site */
	uint8_t window;				/* bytes displaced, >= KYMO_PATCH_SIZE */
	uint8_t n_insns;
	uint8_t insn_offset[KYMO_WINDOW_MAX_INSNS + 1];	/* of each displaced instruction, then `window` */
	uint8_t original[KYMO_WINDOW_MAX];	/* the displaced bytes */
	bool ends_flow;				/* the last displaced instruction never goes on behind the window
						 * from where it is displaced to: a jump, a return, or a call */
};

/* Why a tactic was not taken: one sentence, about `vaddr` where that is not 0. */
struct kymo_refusal {
	enum kymo_tactic tactic;		/* NONE: the site itself is impossible */
	uint64_t vaddr;
	char reason[160];
};

/*
 * Plan a probe on the instruction at `vaddr`. An endbr64 has to stay where it is: a probe on one is planned on what
 * follows, `ret->vaddr` is then behind it. 0 and `ret`, or -EPERM when no tactic is proven safe. `refusals` (room
 * for KYMO_N_TACTICS, may be NULL) gets what was tried and why not, best tactic first, also on success; `n_refusals`
 * their number. The sentences use addresses as the file has them.
 */
int kymo_plan(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr,
	      struct kymo_plan *ret, struct kymo_refusal *refusals, size_t *n_refusals);

/* One line of text for the instruction at `bytes` (Intel syntax), for `kymo explain`. Returns its length in bytes,
 * or -EINVAL when it does not decode; `text` is "(bad)" then. */
int kymo_disassemble(const uint8_t *bytes, size_t size, uint64_t address, char *text, size_t text_size);

/* ---- moving code ---------------------------------------------------------------------------------------------- */

/* Upper bound of what kymo_relocate() makes of one window. */
#define KYMO_RELOCATED_MAX 192

/*
 * Write code to `out` that does at runtime address `to` what the window of `plan` does at runtime address `from`, and
 * then continues after the window: RIP-relative operands reach what they reached, calls push the original return
 * address, branches are widened. `insn_at[i]` is the offset in `out` of displaced instruction i, with one more for
 * the jump back. Returns the size; -ERANGE when a target is out of reach from `to`, -ENOTSUP for an instruction that
 * cannot run elsewhere (kymo_plan() never lets one through), -ENOSPC.
 */
int kymo_relocate(const struct kymo_plan *plan, uint64_t from, uint64_t to, uint8_t *out, size_t size,
		  uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1]);

/* The KYMO_PATCH_SIZE bytes of a jump from `from` to `to`. -ERANGE beyond ±2 GiB. */
int kymo_encode_jump(uint64_t from, uint64_t to, uint8_t out[KYMO_PATCH_SIZE]);

/* ---- arguments ------------------------------------------------------------------------------------------------ */

enum kymo_fetch_kind {
	KYMO_FETCH_REGISTER,	/* value: register number of kymo_register_parse() */
	KYMO_FETCH_ARGUMENT,	/* value: 1 for the function's first; only right at a function entry */
	KYMO_FETCH_STACK,	/* value: N, the 8 bytes at stack pointer + 8 * N */
	KYMO_FETCH_STACK_POINTER,
	KYMO_FETCH_IMMEDIATE,	/* value: itself */
};

struct kymo_fetch {
	enum kymo_fetch_kind kind;
	enum kymo_type type;
	int64_t value;
};

#define KYMO_FETCH_STACK_MAX 255	/* of KYMO_FETCH_STACK; ARGUMENT n is n <= 6, or stack n - 6 */

/* Number of the register named by the `length` bytes at `name` ("di", "rdi", "edi", "r8", "ip", "flags" …), or -1;
 * `type_ret` gets the width that the name implies ("di" and "rdi" KYMO_TYPE_X64 as in the kernel's grammar,
 * "edi" KYMO_TYPE_X32). */
int kymo_register_parse(const char *name, size_t length, enum kymo_type *type_ret);

#endif
