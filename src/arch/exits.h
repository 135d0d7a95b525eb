/* What code leads to: exits of functions, system calls, what resolvers return. What holds for all of it is told in
 * code.h. */
#ifndef KYMO_ARCH_EXITS_H
#define KYMO_ARCH_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"
#include "arch/plan.h"

/* An instruction by which a thread leaves a function. */
struct kymo_exit {
	uint64_t vaddr;
	uint64_t target; /* of a direct tail jump; 0: a return, or an indirect jump */
	bool is_tail;    /* a jump to another function: what is returned is not known yet */
};

/*
 * All exits of a function that is made of `parts` (the first is where it is entered; others are what the compiler split
 * off, such as "f.cold"). 0, or -EPERM and the reason when one can't be told: an indirect jump that may be neither a
 * table nor a tail call, a conditional jump out of the function, or an undecodable part. A function that never returns
 * has 0 exits. `ret` is a fresh array that the caller frees.
 */
int kymo_exits_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		      const struct kymo_extent *parts, size_t n_parts, struct kymo_exit **ret, size_t *n_ret,
		      struct kymo_refusal *refusal);

/* A `syscall` instruction, or bytes that may be one. */
struct kymo_syscall_site {
	uint64_t vaddr;
	int32_t number;     /* of the only call that is made there; -1: not known */
	const char *reason; /* why nothing may be put there; NULL: kymo_plan() says whether it can */
};

/* All of a module, by address; a fresh array. -ENOMEM. */
int kymo_syscall_sites_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
			      struct kymo_syscall_site **ret, size_t *n_ret);

/* Whether the module may call the kernel by another instruction, as 32-bit programs do: 1, and where the first one is,
 * or 0. Bytes of functions that do not decode are taken for instructions. -ENOMEM. */
int kymo_find_other_call(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t *ret);

#define KYMO_CALL_SIZE 2 /* bytes of each instruction that calls the kernel */

/* Where the bytes of such an instruction are next, at `from` or after it, whatever they are part of; `size`: nowhere.
 */
size_t kymo_next_call(const uint8_t *bytes, size_t size, size_t from);

/*
 * What the resolver of an indirect function (IFUNC), which begins at `vaddr`, can return: the starts of functions of
 * the module, at least one, sorted; a fresh array that the caller frees. -EPERM and the reason (the rest of a sentence
 * about the resolver) where it may return something else, or does not show what. `constant` tells the word at an
 * address that nothing but relocation ever writes, as it is when the module is loaded at 0; false for other addresses.
 */
int kymo_resolver_create(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr,
			 bool (*constant)(void *data, uint64_t vaddr, uint64_t *ret), void *data, uint64_t **ret,
			 size_t *n_ret, struct kymo_refusal *refusal);

#endif
