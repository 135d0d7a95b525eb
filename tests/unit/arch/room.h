/*
 * What else is in a module's text and around it, for the planner: bytes that plans have changed, locks, and free
 * addresses.
 */
#ifndef KYMO_TESTS_ARCH_ROOM_H
#define KYMO_TESTS_ARCH_ROOM_H

#include "arch/code.h"
#include "arch/plan.h"

struct room_taken {
	int64_t low, high;
};

struct room {
	struct kymo_plan_room ops; /* for kymo_plan() */
	uint64_t low, high;        /* of all text */
	uint8_t *now;              /* the text with all patches, by address - low */
	uint8_t *flags;
	struct room_taken free[8]; /* [low, high) */
	size_t n_free;
	struct room_taken *taken; /* sorted */
	size_t n_taken, max_taken;
	uint64_t site; /* the one that is planned: its wanting is not a lock */
};

void room_init(struct room *room, const struct kymo_module_code *code);
void room_deinit(struct room *room);

/* [low, high) is free, as signed addresses. */
void room_free(struct room *room, int64_t low, int64_t high);

/* All within 2 GiB of the text but what lies closer than 1 MiB to it. */
void room_free_around(struct room *room);

void room_lock(struct room *room, uint64_t vaddr, size_t size);
void room_want(struct room *room, uint64_t vaddr); /* a probe is wanted there */
void room_unsettle(struct room *room, uint64_t vaddr, size_t size);

/* Put a plan in: its bytes and its lock. Fails the test if it breaks another plan's lock or relies on nothing. */
void room_put(struct room *room, const struct kymo_plan *plan);

/* Take it out again: the bytes of `original` are back, the lock stays. */
void room_take_out(struct room *room, const struct kymo_plan *plan);

/* Where control goes from `vaddr`, by the bytes as they are: through prefixes, one short jump, one jmp rel32. 0
 * when there is no such. */
uint64_t room_follow(const struct room *room, uint64_t vaddr);

/* Where plain jumps lead: as far away as pads are, anywhere. */
uint64_t room_plain_target(uint64_t vaddr);

bool room_has_taken(const struct room *room, uint64_t vaddr, size_t size);

#endif
