/* Where a thread stands while an engine steps it, instruction by instruction. Public header of the room. In callbacks
 * of the engine, or while it stops the thread. */
#ifndef KYMO_BRANCH_WALK_H
#define KYMO_BRANCH_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/step.h"

struct kymo_engine;

struct kymo_walk {
	bool is_known; /* the members that follow are */
	uint64_t pc, sp;
	struct kymo_step step; /* the instruction at `pc` */
	bool has_own_flag;     /* the program itself has turned single steps on */
};

/* Look where the thread stands. Code that can't be read or decoded is not known. Errors are those of
 * kymo_engine_get_registers(); `ret` is not known then. */
int kymo_walk_look(struct kymo_engine *engine, struct kymo_walk *ret);

/* The thread has executed the instruction at `before`, by a step, and stands at `now`: take the trap flag of that step
 * out of what the instruction has pushed. */
void kymo_walk_clean(struct kymo_engine *engine, const struct kymo_walk *before, const struct kymo_walk *now);

/* Execute the instruction where the thread stands if it pops flags, which is not left to a step. False: it is another
 * one, or could not be executed. */
bool kymo_walk_pop(struct kymo_engine *engine, struct kymo_walk *walk);

#endif
