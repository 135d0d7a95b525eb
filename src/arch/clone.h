/*
 * Function clones: a copy of a function in which each block that a branch leads to stores a number into a ring of its
 * thread. Public header of the room, beside code.h, and as pure: bytes in, bytes out. docs/internals/branches.md tells
 * why a clone does what the function does.
 */
#ifndef KYMO_ARCH_CLONE_H
#define KYMO_ARCH_CLONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"
#include "arch/plan.h"
#include "base/vec.h"

/* What is known of a function that can be cloned. */
struct kymo_clone;

/* Where threads come back from the function's own text. */
enum kymo_catch_kind {
	KYMO_CATCH_ENTRY,
	KYMO_CATCH_RETURN,  /* what a callee returns to */
	KYMO_CATCH_TARGET,  /* of a jump table, a label whose address is taken */
	KYMO_CATCH_LANDING, /* a landing pad of exceptions, or another address that data has */
	KYMO_CATCH_JUMP,    /* what other functions jump to */
};

/*
 * A jump into the clone has to be written there: KYMO_JUMP_SIZE bytes at `vaddr`; or, where that has no room for them,
 * at `island`, and then a short jump to there, KYMO_SHORT_JUMP_SIZE bytes, at `vaddr`. Nothing else executes the bytes
 * that these take when all are written.
 */
struct kymo_catch {
	uint64_t vaddr;
	uint64_t island; /* or 0 */
	enum kymo_catch_kind kind;
};

/*
 * Analyze the function that begins at `start`. 0 and `ret`, which the caller destroys and which must not outlive `code`
 * and `map`; -EPERM and the reason where it is not fully understood; -ENOMEM.
 */
int kymo_clone_create(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t start,
		      struct kymo_clone **ret, struct kymo_refusal *refusal);
void kymo_clone_destroy(struct kymo_clone *clone);

/* The extents that the clone stands for: the function, and what the compiler split off. */
const struct kymo_extent *kymo_clone_parts(const struct kymo_clone *clone, size_t *n_ret);

/* The blocks that are recorded, sorted by vaddr. Number `first_site + i` in a ring is the i-th. */
const uint64_t *kymo_clone_sites(const struct kymo_clone *clone, size_t *n_ret);

/* Sorted by vaddr. */
const struct kymo_catch *kymo_clone_catches(const struct kymo_clone *clone, size_t *n_ret);

/* One write: of what is at the catch with that index, or of its island. */
struct kymo_clone_step {
	uint32_t index;
	bool is_island;
};

/* The order in which all of them are made: after each, what is written and what is not is a correct function. Reversed,
 * it is that in which they are taken out. */
const struct kymo_clone_step *kymo_clone_steps(const struct kymo_clone *clone, size_t *n_ret);

/* Return sites, targets and landing pads that have no room for a jump: the thread goes on in the function's own text
 * without a branch, up to the next catch or the return. The block is not recorded. */
size_t kymo_clone_n_uncaught(const struct kymo_clone *clone);

/* How sites are recorded, in numbers of sites. */
struct kymo_clone_costs {
	size_t n_held;    /* the position is in a register that is free all the way here from the last site */
	size_t n_free;    /* it is loaded into a register that is free */
	size_t n_spilled; /* no register is free */
	size_t n_calls, n_calls_apart; /* calls; those that can't be executed in the function's own text */
};
void kymo_clone_costs(const struct kymo_clone *clone, struct kymo_clone_costs *ret);

/* How sites are recorded is in wire/clones.h. */
struct kymo_clone_env {
	uint64_t bias;       /* runtime address of the function less its vaddr */
	int32_t position;    /* where a thread's word with the address of its ring's next entry is, from its FS base.
				Without gates it always points into a ring, whose thread may be the only one that uses
				it */
	uint32_t first_site; /* the number of the first site, not 0, and below 2 GiB */
	bool calls_apart;    /* replace calls by a push of the original return address and a jump, as if a call cannot
				be executed in the function's own text */
	bool checks_held;    /* a register that has the position from one site to the next is compared with the word
				before it is used, as a handler of signals may record in between */
	uint64_t arena;      /* where it is; 0: no gates */
	uint64_t slow;       /* where the code of kymo_clone_emit_slow() is, which gates call */
};

/* Bytes that kymo_clone_emit() makes at the most. */
size_t kymo_clone_size(const struct kymo_clone *clone);

/*
 * Where a clone's code is what code of the function. A thread that is exactly at `at` is in the state that the function
 * has before its instruction `vaddr`, but for what is pushed. It may go on in either. Between one and the next it is
 * not, and what it executes is a part of `vaddr` of the point before.
 */
struct kymo_clone_point {
	uint64_t vaddr;
	uint32_t at;     /* offset in the code; they ascend */
	uint8_t lowered; /* bytes that the stack pointer is below the function's */
	uint8_t pushed;  /* the register of which the word at the stack pointer is what the function has in it */
	bool is_copy;    /* the copy of the instruction begins here, behind what is recorded for it */
	uint8_t held;    /* the register that has the position here */
};

#define KYMO_CLONE_HOLDS_NONE 16 /* no register is pushed, or has the position */

struct kymo_clone_map {
	KYMO_VEC(struct kymo_clone_point) points;
};

void kymo_clone_map_deinit(struct kymo_clone_map *map);

/* The last point at offset `at` or before it; NULL: before all. */
const struct kymo_clone_point *kymo_clone_origin(const struct kymo_clone_map *map, uint32_t at);

/*
 * Write the clone for runtime address `to` into `out`. `catch_at[i]` is the offset of what catch i has to lead to;
 * there is room for all. Points are added to `map`, which may be NULL. Returns the size; -ERANGE where something is out
 * of reach from `to`, -ENOSPC, -ENOMEM.
 */
int kymo_clone_emit(const struct kymo_clone *clone, const struct kymo_clone_env *env, uint64_t to, uint8_t *out,
		    size_t size, uint32_t *catch_at, struct kymo_clone_map *map);

/* What gates call for a thread whose word does not point into the arena: it gives the thread a ring, or the sink. `tid`
 * is where a thread has its id, from its FS base. Returns the size, or -ENOSPC. */
#define KYMO_CLONE_SLOW_SIZE 160u
int kymo_clone_emit_slow(const struct kymo_clone_env *env, int32_t tid, uint8_t *out, size_t size);

/* Whether a gate calls the code at `slow` by these bytes, and `back` is where that returns to. */
#define KYMO_CLONE_GATE_CALL 5
bool kymo_clone_is_gate_call(const uint8_t bytes[KYMO_CLONE_GATE_CALL], uint64_t back, uint64_t slow);

/* Whether a direct branch of the function leads to its own start. In the clone it leads to the copy, and not to what
 * the text has there. */
bool kymo_clone_comes_back(const struct kymo_clone *clone);

/* Where a pad goes on in a clone (struct kymo_pad_chain): its frame is taken down, then comes the gate. Returns the
 * size, or -ENOSPC. */
#define KYMO_CLONE_HOP_SIZE 64u
int kymo_clone_emit_hop(uint64_t gate, uint64_t to, uint8_t *out, size_t size);

/* ---- what entries say ------------------------------------------------------------------------ */

enum kymo_clone_way_kind {
	KYMO_CLONE_FALLS, /* no branch was taken */
	KYMO_CLONE_JUMPS,
	KYMO_CLONE_CALLS,
	KYMO_CLONE_RETURNS,
	KYMO_CLONE_LEAVES, /* jumps out */
	KYMO_CLONE_LOST,   /* another site of the function has to come first, or nothing can */
};

struct kymo_clone_way {
	enum kymo_clone_way_kind kind;
	uint64_t from, to; /* vaddrs, of the branch; `to` is 0 where the function does not tell */
	uint64_t site;     /* that `to` is, if it is one: the instruction after its endbr64 */
	uint64_t back;     /* where a call returns to */
};

/*
 * What the function does from site `from` on, if `next` is the site of it that the thread records then. True: it goes
 * there by the only way on which it records nothing in between. False: it does not without leaving. `ret` is the first
 * branch that is taken on that way: one that leaves, or leads to `next`; or one that leads to `ret->site`, from where
 * the rest of the way is asked for. Of a way that leaves, that is told where there is one only.
 */
bool kymo_clone_way(const struct kymo_clone *clone, uint64_t from, uint64_t next, struct kymo_clone_way *ret);

/* Whether control may come to site `vaddr` from outside of the function, and how. */
bool kymo_clone_is_catch(const struct kymo_clone *clone, uint64_t vaddr, enum kymo_catch_kind *kind_ret);

#endif
