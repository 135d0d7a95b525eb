/* The bytes of breakpoints in a memory. */
#ifndef KYMO_HUB_TRAP_BREAK_H
#define KYMO_HUB_TRAP_BREAK_H

#include "base/vec.h"
#include "kymo/engine.h"

struct hub_memory;

struct hub_break {
	uint64_t address;
	unsigned int owners; /* 0: it was taken out, and a hit may be on its way */
	uint8_t original;    /* what is below it */
	int entry;           /* in the journal; -1: none is needed */
	bool is_in_jump; /* of a recording, behind its first byte, where there is no instruction: it is not written */
	uint64_t out_ns;
};

/* The memory of a process and of those that share it. */
struct hub_space {
	struct hub_space *next;
	unsigned int n_processes; /* 0: it is kept for a while, for children whose makers were killed */
	uint64_t left_ns;
	struct hub_memory *memory;         /* a reference */
	KYMO_VEC(struct hub_break) breaks; /* by address */
	size_t n_in;
	bool is_parked; /* nobody can run, and no byte is in */
};

/* Whether the byte at the address was `from`, and is `to` now. */
bool hub_space_swap(const struct hub_memory *memory, uint64_t address, uint8_t from, uint8_t to);

/* The byte of one that is in, and back. */
void hub_space_lift(struct hub_space *space, const struct hub_break *b);
void hub_space_lower(struct hub_space *space, const struct hub_break *b);

/* Whether what is at the address is a breakpoint instruction. */
bool hub_space_has_trap(const struct hub_space *space, uint64_t address);

/* The first breakpoint that is not below the address, by its number. */
size_t hub_space_place_of(const struct hub_space *space, uint64_t address);

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address);

#endif
