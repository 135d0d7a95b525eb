/* The bytes of breakpoints in a memory. */
#ifndef KYMO_HUB_TRAP_BREAK_H
#define KYMO_HUB_TRAP_BREAK_H

#include "base/vec.h"
#include "hub/trap/pads.h"
#include "kymo/engine.h"
#include "procfs/maps.h"

struct hub_memory;

/* What is mapped at an address: all 0 for memory of no file. */
struct hub_code {
	uint64_t inode, offset;
	uint32_t major, minor;
};

#define HUB_BREAK_NEXT 8

struct hub_break {
	uint64_t address;
	unsigned int owners; /* 0: it was taken out, and a hit may be on its way */
	uint8_t original;    /* what is below it */
	int entry;           /* in the journal; -1: none is needed */
	bool is_in_jump; /* of a recording, after its first byte, where there is no instruction: it is not written */
	bool is_void;    /* its code was unmapped. What is mapped there now is not touched */
	bool by_pad;     /* the trap of the pad at its address is in place of a byte, and `entry` is of its word */
	struct hub_code code;
	uint8_t next[HUB_BREAK_NEXT]; /* the bytes after it, as the program has them */
	uint8_t n_next;
	uint64_t out_ns;
};

/* The mappings of a process, read when the first breakpoint is looked for in them. Zeroed but for `pid`. */
struct hub_mappings {
	pid_t pid;
	bool was_read, is_known;
	struct kymo_maps maps;
};

void hub_mappings_deinit(struct hub_mappings *mappings);

/* The memory of a process and of those that share it. */
struct hub_space {
	struct hub_space *next;
	unsigned int n_processes; /* 0: it is kept for a while, for children whose makers were killed */
	uint64_t left_ns;
	struct hub_memory *memory;         /* a reference */
	KYMO_VEC(struct hub_break) breaks; /* by address */
	KYMO_VEC(struct hub_pad) pads;     /* of jumps in its text */
	size_t n_in;
	bool is_disarmed; /* no thread can run, and no byte is in */
	bool is_alone;    /* no process of another hub or of none shared it, and all threads are the hub's since */
};

/* Whether the byte at the address was `from`, and is `to` now. */
bool hub_space_swap(const struct hub_memory *memory, uint64_t address, uint8_t from, uint8_t to);

struct hub_code hub_code_at(const struct kymo_map *map, uint64_t address);

/* Whether a breakpoint instruction is at its address, and the bytes of its code behind: it, or a copy that the program
 * has made of it. */
bool hub_break_is_written(const struct hub_memory *memory, const struct hub_break *b);

/* Whether it is written, or the code is mapped in which it was put. True, too, where mappings cannot be read: of a
 * process that has ended, whose memory others may share. */
bool hub_break_is_there(const struct hub_memory *memory, const struct hub_break *b, struct hub_mappings *mappings);

/* The byte of one that is in, and back. One whose code is not there any more becomes void. `mappings`: NULL where a
 * thread stands at it. Whether a byte was written. */
bool hub_space_lift(struct hub_space *space, struct hub_break *b, struct hub_mappings *mappings);
void hub_space_lower(struct hub_space *space, const struct hub_break *b);

/* Whether what is at the address is a breakpoint instruction. */
bool hub_space_has_trap(const struct hub_space *space, uint64_t address);

/* The first breakpoint that is not below the address, by its number. */
size_t hub_space_index_of(const struct hub_space *space, uint64_t address);

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address);

/* The first one from the address on, which is one beyond the last where there is none; whether it is within so many
 * bytes. */
struct hub_break *hub_space_first_from(const struct hub_space *space, uint64_t address);
bool hub_space_is_within(const struct hub_space *space, const struct hub_break *b, uint64_t address, size_t size);

/* Whether it is in memory, or will be when its process runs: stopped threads were compared when they stopped. */
bool hub_break_is_inserted(const struct hub_space *space, const struct hub_break *b);

/* What is there without breakpoints, and without the jumps to their pads. */
int hub_space_read(const struct hub_space *space, uint64_t address, void *data, size_t size);

#endif
