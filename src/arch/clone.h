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

/* What is known of a function that can be cloned. */
struct kymo_clone;

/* Where threads come back from the function's own text. */
enum kymo_catch_kind {
	KYMO_CATCH_ENTRY,
	KYMO_CATCH_RETURN,  /* what a callee returns to */
	KYMO_CATCH_TARGET,  /* of a jump table, a label whose address is taken */
	KYMO_CATCH_LANDING, /* a landing pad of exceptions, or another address that data has */
};

/*
 * A jump into the clone has to be written there: KYMO_JUMP_SIZE bytes at `vaddr`; or, where that has no room for them,
 * at `island`, and then a short jump to there, KYMO_SHORT_JUMP_SIZE bytes, at `vaddr`. Nothing else executes the bytes
 * that these take.
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

/* A ring has 16,384 entries of four bytes, and is aligned to its size. */
#define KYMO_CLONE_RING_SIZE 65536u

struct kymo_clone_env {
	uint64_t bias;       /* runtime address of the function less its vaddr */
	int32_t position;    /* where a thread's word with the address of its ring's next entry is, from its FS base.
				It always points into a ring, whose thread may be the only one that uses it */
	uint32_t first_site; /* the number of the first site, not 0 */
	bool calls_apart; /* replace calls by a push of the original return address and a jump, as if a call cannot be
			     executed in the function's own text */
};

/* Bytes that kymo_clone_emit() makes at the most. */
size_t kymo_clone_size(const struct kymo_clone *clone);

/*
 * Write the clone for runtime address `to` into `out`. `catch_at[i]` is the offset of what catch i has to lead to;
 * there is room for all. Returns the size; -ERANGE where something is out of reach from `to`, -ENOSPC, -ENOMEM.
 */
int kymo_clone_emit(const struct kymo_clone *clone, const struct kymo_clone_env *env, uint64_t to, uint8_t *out,
		    size_t size, uint32_t *catch_at);

#endif
