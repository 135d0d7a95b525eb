/*
 * Clones in the process of the test: a library is loaded, and its functions are replaced by clones, with all catches
 * written over their text. What stops threads, journals and takes clones out again in a target is not needed here.
 */
#ifndef KYMO_TESTS_BRANCH_CLONES_H
#define KYMO_TESTS_BRANCH_CLONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/clones.h"

struct branch_function;
struct kymo_code;
struct kymo_module;
struct kymo_wire_arena;

struct clones {
	void *handle; /* of dlopen() */
	struct kymo_module *module;
	struct kymo_code *code;
	uint64_t bias;
	uint64_t *sites; /* runtime addresses by number; 0 is none */
	size_t n_sites;
	uint8_t *original; /* the text before catches were written */
	uint8_t *text;
	size_t text_size;
	uint8_t *code_out; /* of all clones */
	size_t code_size;
	struct kymo_clones *all;
	struct branch_function *functions; /* that are cloned, by number */
	size_t n_cloned;
};

/* The thread's position in its ring, and the ring. */
extern __thread uint64_t clones_position;
void clones_ring_begin(void); /* make it, where there is none, and begin at its start */

/* The arena, and this thread without a ring: gates have to give it the first one. */
struct kymo_wire_arena *clones_arena_begin(uint32_t n_ready);

/* The numbers in the ring, oldest first: into `ret`, which has room for a whole ring; how many. By the entry of 0
 * alone, as for a thread that is gone. */
size_t clones_ring_read(uint32_t *ret);
size_t clones_arena_read(const struct kymo_wire_arena *arena, uint32_t number, uint32_t *ret);

enum clones_way {
	CLONES_IN_PLACE,
	CLONES_APART, /* all calls are taken apart */
	CLONES_GATED, /* with gates, and no register that holds the position */
	CLONES_WAYS,
};

/* False where there is no such library. A private copy where `is_private`. Clones are made, and not put in. */
bool clones_open(const char *path, bool is_private, enum clones_way way, struct clones *ret);
void clones_put_in(struct clones *clones);
void clones_take_out(struct clones *clones);
void clones_close(struct clones *clones);

/* What functions and their callees do in their own text: all sites that are passed in a child that is stepped. An array
 * to be freed. `result_ret`: what the function returns. */
uint32_t *clones_reference(const struct clones *clones, long (*function)(long), long argument, size_t *n_ret,
			   long *result_ret);

/* All branches that it and its callees take, in any code. An array to be freed. */
struct clones_branch {
	uint64_t from, to;
};
struct clones_branch *clones_reference_branches(const struct clones *clones, long (*function)(long), long argument,
						size_t *n_ret);

#endif
