/*
 * Threads that stand in the text of a module when clones are put in: where each goes on. Public header of the room,
 * beside clones.h, and as pure. docs/design/running-clones.md tells why.
 */
#ifndef KYMO_ARCH_CLONE_STAND_H
#define KYMO_ARCH_CLONE_STAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_clones;
struct user_regs_struct;

enum kymo_clone_stand_kind {
	KYMO_STANDS_OUTSIDE, /* in no function that has a clone */
	KYMO_STANDS_IN,      /* it goes on in the copy */
	KYMO_STANDS_ASTRAY,  /* in such a function, where the clone knows no instruction */
};

struct kymo_clone_stand {
	size_t index;    /* of the clone, but for OUTSIDE */
	uint32_t at;     /* of IN: offset in the code */
	uint8_t held;    /* of IN: the register that has to have the position, or KYMO_CLONE_HOLDS_NONE */
	uint8_t lowered; /* of IN: bytes that the stack pointer is lower there. Not 0: the word there has to be `held`
			  */
};

/* Which clone has `vaddr` in one of its extents. */
bool kymo_clones_find(const struct kymo_clones *clones, uint64_t vaddr, size_t *index_ret);

/*
 * Of a thread with these registers, in a module that is mapped with `bias`. The code of the clones was emitted. A
 * thread in a system call stands where the call is made: it may have to make it again.
 */
enum kymo_clone_stand_kind kymo_clones_stand(const struct kymo_clones *clones, const struct user_regs_struct *registers,
					     uint64_t bias, struct kymo_clone_stand *ret);

/* A general register by its number (clone.h). */
unsigned long long *kymo_clone_register(struct user_regs_struct *registers, unsigned int number);

/*
 * Change the registers of one that stands IN: it goes on in the code that is at `code`. `position` is its word. Where
 * `lowered` is not 0 the caller writes what it has had in `held`, 8 bytes, to its new stack pointer.
 */
void kymo_clone_stand_move(const struct kymo_clone_stand *stand, uint64_t code, uint64_t position,
			   struct user_regs_struct *registers);

#endif
