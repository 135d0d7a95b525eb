/* The arena of function clones, as the recorder has it (wire/clones.h). */
#ifndef KYMO_PROBE_MEMORY_ARENA_H
#define KYMO_PROBE_MEMORY_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/clones.h"

struct kymo_process;
struct kymo_remote_mapping;

struct kymo_arena {
	int fd;           /* -1: there is none */
	uint64_t address; /* in the process */
	uint32_t ready;   /* rings that have memory */
};

void kymo_arena_deinit(struct kymo_arena *arena);

/* Make its memory in the stopped process, within a remote call: `remote_ret` is a descriptor there, to be closed by the
 * caller in any case, or -1. The head and the sink have memory, and no ring is ready. */
struct kymo_error *kymo_arena_create(struct kymo_process *process, struct kymo_arena *arena, int64_t *remote_ret);

/* Map it there, where nothing may be. `made_ret` has a size once it is mapped, also on an error. */
struct kymo_error *kymo_arena_map(struct kymo_process *process, const struct kymo_arena *arena, int64_t remote,
				  struct kymo_remote_mapping *made_ret);

/* Give a forked child, which is stopped, memory of its own in the arena's place. A clone that it returns into goes on
 * there, and its parent's history stays what it is. */
struct kymo_error *kymo_arena_part(struct kymo_process *child, const struct kymo_arena *arena);

/* Let the first `n` rings have memory, and be given to threads. Negative errno: as many are ready as were before. */
int kymo_arena_grow(struct kymo_arena *arena, uint32_t n);

/* Give the first rings to `n` threads of the stopped process, none of which has run a clone: `words_ret` has what the
 * word of each becomes. Those for which no ring is ready share the sink, and are counted. Negative errno. */
int kymo_arena_give(const struct kymo_arena *arena, const struct kymo_wire_arena_thread *threads, size_t n,
		    uint64_t *words_ret);

/* Whether a word may be what some arena has left, in a thread that has got the stack of another one; or it is 0. */
bool kymo_arena_may_be_word(uint64_t word);

/* Rings that threads may have by now, and threads that have got none. */
uint32_t kymo_arena_used(const struct kymo_arena *arena, uint32_t *sunk_ret);

/* What the arena says of ring `i`, which is ready, and its entries. False where it can't be read. */
bool kymo_arena_thread(const struct kymo_arena *arena, uint32_t i, struct kymo_wire_arena_thread *ret);
bool kymo_arena_ring(const struct kymo_arena *arena, uint32_t i,
		     uint32_t ret[KYMO_WIRE_ARENA_RING_SIZE / sizeof(uint32_t)]);

#endif
