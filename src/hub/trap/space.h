/* Memories with breakpoints. */
#ifndef KYMO_HUB_TRAP_SPACE_H
#define KYMO_HUB_TRAP_SPACE_H

#include "base/vec.h"
#include "kymo/engine.h"

struct hub_memory;
struct hub_process;

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

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address);

/* One owner more; less. */
int hub_space_insert(struct kymo_hub *hub, struct hub_process *process, uint64_t address);
void hub_space_remove(struct kymo_hub *hub, struct hub_space *space, uint64_t address);

/* The byte of one that is in, and back. */
void hub_space_lift(struct hub_space *space, const struct hub_break *b);
void hub_space_lower(struct hub_space *space, const struct hub_break *b);

/* Whether what is at the address is a breakpoint instruction. */
bool hub_space_has_trap(const struct hub_space *space, uint64_t address);

/* The process has other memory now, or has ended. Its engines' breakpoints are gone. */
void hub_space_leave(struct kymo_hub *hub, struct hub_process *process);

/* A process has made another one, which does not run yet. */
void hub_space_born(struct kymo_hub *hub, struct hub_process *maker, struct hub_process *child, bool is_vfork);

/* One whose maker is not known is let go. */
void hub_space_clean_stranger(struct kymo_hub *hub, pid_t tid);

/* What engines read and write. */
int hub_space_read(struct hub_space *space, uint64_t address, void *data, size_t size);
int hub_space_write(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size);

/* What a recorder writes, which may be jumps over breakpoints, or what was there before. The process has a space.
 * -EBUSY: somebody runs where there are breakpoints. */
int hub_space_write_text(struct kymo_hub *hub, const struct hub_process *process, uint64_t address, const void *data,
			 size_t size);

/* Take out all there are. */
void hub_space_clear_all(struct kymo_hub *hub);

/* Free those that have been left for long; whether there are such. */
void hub_space_look_at_clock(struct kymo_hub *hub, uint64_t now);
bool hub_space_needs_clock(const struct kymo_hub *hub);

#endif
