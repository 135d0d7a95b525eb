/*
 * The clones of a module: which functions get one, their code in one piece, and what is to be written to the text.
 * Public header of the room, beside clone.h, and as pure.
 */
#ifndef KYMO_ARCH_CLONES_H
#define KYMO_ARCH_CLONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/clone.h"

struct kymo_clones;

/* Whether a function is to be cloned. */
typedef bool kymo_clones_is_chosen(const struct kymo_extent *function, void *data);

/* What ends an analysis before all functions were seen. */
struct kymo_clones_bounds {
	size_t n_writes;                 /* to the text, at the most */
	bool (*is_given_up)(void *data); /* asked for each function; or NULL */
	/* Asked for each that could be cloned, and maybe again: whether it is not to be; or NULL. */
	bool (*is_left_out)(const struct kymo_clone *clone, void *data);
	void *data;
};

/*
 * Analyze all functions, and keep those that are chosen and can be cloned. A part that the compiler has split
 * off belongs to its function. 0 and `ret`, which the caller destroys and which must not outlive `code` and
 * `map`; -E2BIG or -ECANCELED by `bounds`, which may be NULL; -ENOMEM.
 */
int kymo_clones_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		       kymo_clones_is_chosen *is_chosen, void *data, const struct kymo_clones_bounds *bounds,
		       struct kymo_clones **ret);
void kymo_clones_destroy(struct kymo_clones *clones);

/* A chosen function that can't be cloned, and why. */
struct kymo_clones_refused {
	uint64_t start; /* vaddr */
	struct kymo_refusal refusal;
};

const struct kymo_clones_refused *kymo_clones_refused(const struct kymo_clones *clones, size_t *n_ret);

/* How many have a clone; one of these, and the number of its first site less that of the first clone. */
size_t kymo_clones_n(const struct kymo_clones *clones);
const struct kymo_clone *kymo_clones_at(const struct kymo_clones *clones, size_t i, uint32_t *first_site_ret);

/* How many writes to the text they take. */
size_t kymo_clones_n_writes(const struct kymo_clones *clones);

/* Numbers that all of their sites take. */
uint32_t kymo_clones_n_sites(const struct kymo_clones *clones);

/* Bytes that kymo_clones_emit() makes at the most. */
size_t kymo_clones_size(const struct kymo_clones *clones);

/*
 * A change of the text: `size` bytes at `vaddr`, by one write. `link` is the jump of five bytes that leads to offset
 * `to` of the code: this very write, or that of an island, which is written before and is restored after it.
 */
struct kymo_clones_write {
	uint64_t vaddr, link;
	uint32_t to;
	uint8_t size;
	uint8_t bytes[KYMO_JUMP_SIZE], original[KYMO_JUMP_SIZE];
};

/*
 * Write the code for runtime address `to` into `out`. Of `env` all but `slow` counts, which is in the code. `tid` is
 * where a thread has its id, from its FS base. Returns the size; -ERANGE, -ENOSPC, -ENOMEM. The writes and the map are
 * known then.
 */
int kymo_clones_emit(struct kymo_clones *clones, const struct kymo_clone_env *env, int32_t tid, uint64_t to,
		     uint8_t *out, size_t size);

/* In the order in which they are made. They do not overlap. */
const struct kymo_clones_write *kymo_clones_writes(const struct kymo_clones *clones, size_t *n_ret);

/* Of all code. */
const struct kymo_clone_map *kymo_clones_map(const struct kymo_clones *clones);

/* Of the code of clone `i`, which is a part of that; `n_ret` points. */
const struct kymo_clone_point *kymo_clones_points(const struct kymo_clones *clones, size_t i, size_t *n_ret);

#endif
