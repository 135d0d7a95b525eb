/*
 * Pads that stop threads for breakpoints: a jump at the breakpoint's address leads to code that tests a condition, and
 * comes to a trap where that holds (arch/pad.h). The owner of the breakpoint writes pads and jumps, as a recorder does,
 * and tells its hub of them. docs/internals/gdb-pads.md has the rules.
 */
#ifndef KYMO_HUB_TRAP_PADS_H
#define KYMO_HUB_TRAP_PADS_H

#include "arch/pad.h"
#include "arch/plan.h"
#include "kymo/engine.h"

struct hub_space;
struct kymo_hub;

struct hub_pad {
	uint64_t site;                 /* where the jump is: the address of breakpoints */
	uint64_t at;                   /* of the pad */
	uint64_t word;                 /* not 0: the pad's trap is in */
	uint64_t link;                 /* the address of the jump to the pad: the site, or a trampoline */
	uint8_t patch[KYMO_PATCH_MAX]; /* the bytes of the plan's patch at the site */
	struct kymo_plan plan;
	struct kymo_pad_layout layout;
	uint64_t prints; /* where it prints, in slots of so many bytes (wire/prints.h); slot_size 0: it does not */
	uint32_t n_slots, slot_size;
	bool is_used;    /* breakpoints at the site are by its trap, if its jump is there; else by int3 */
	bool is_leaving; /* its jump is being taken out: no thread is sent to the pad any more */
};

/*
 * The jump of a pad has been written in the process of `engine`. From now on breakpoints at its site are by its trap,
 * also those that are in; and engines read what the jump has replaced. A pad of that site that was told of before is
 * forgotten. Where a client of the hub has a breakpoint, they stay int3. -EBUSY: the jump is not there; -ENOTSUP: the
 * hub is another process'; others as of kymo_engine_insert_breakpoint(). Then all stays as it was.
 */
int hub_pads_give(struct kymo_engine *engine, const struct hub_pad *pad);

/* Whether breakpoints at the site are by the pad from now on, also those that are in. Its condition may have become
 * another. Where a client of the hub has a breakpoint, they stay int3. */
void hub_pads_use(struct kymo_engine *engine, uint64_t site, bool is_used);

/* A client of the hub is to have a breakpoint at the address: one that is there becomes an int3, of which all hits are
 * told. On the hub's thread. */
int hub_pads_yield(struct kymo_hub *hub, struct hub_space *space, uint64_t address);

/* All jumps of the process are about to be taken out: breakpoints that are in become int3. False: they stay after all,
 * and no breakpoint is by them. */
void hub_pads_leave(struct kymo_engine *engine, bool is_leaving);

/* The pads of the process have been taken out: its memory may hold something else where they were. The caller may have
 * let go of the process, and other tracers may have it still. */
void hub_pads_forget(struct kymo_hub *hub, pid_t pid);

/* Have threads that engines hold stand where a recorder can freeze them: after a step they stand before no signal.
 * False: one stands at a system call or before a signal, and cannot be frozen now. */
bool hub_pads_can_freeze(struct kymo_engine *engine);

#endif
