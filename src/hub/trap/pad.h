/* Pads of a memory, and threads in them. */
#ifndef KYMO_HUB_TRAP_PAD_H
#define KYMO_HUB_TRAP_PAD_H

#include <signal.h>
#include <sys/user.h>

#include "kymo/engine.h"

struct hub_pad;
struct hub_space;
struct task;

/* The pad whose jump is at the site; whose trap a thread has executed that stands at `pc`. Or NULL. */
struct hub_pad *hub_pad_at(const struct hub_space *space, uint64_t site);
const struct hub_pad *hub_pad_with_trap(const struct hub_space *space, uint64_t pc);

/* Whether the jump at its site is there and leads to it. */
bool hub_pad_is_written(const struct hub_space *space, const struct hub_pad *pad);

/* Whether its code has a jump at the site still: it, or that of a recording that has joined. */
bool hub_pad_is_there(const struct hub_space *space, const struct hub_pad *pad);

/* Set or clear its word. */
void hub_pad_arm(const struct hub_space *space, const struct hub_pad *pad, bool is_armed);

/* Whether any of the bytes is part of a jump that is there, or of what a jump relies on behind its first byte. */
bool hub_pads_cover(const struct hub_space *space, uint64_t address, size_t size);

/* Whether the bytes are part of the jump at the site, or of the link. */
bool hub_pad_has(const struct hub_pad *pad, uint64_t address, size_t size);

/* Bytes that were read, as they are without the jumps that are there. */
void hub_pads_hide(const struct hub_space *space, uint64_t address, void *data, size_t size);

/* The pad in whose own code the thread has faulted, if that is what the signal says. Or NULL. */
const struct hub_pad *hub_pad_of_fault(const struct task *task, const siginfo_t *info);

/* Whether the process of a thread has pads. */
bool hub_may_be_in_pad(const struct task *task);

/* A thread has stopped. If it is in a pad it is brought to an address of the program, unless it is about to be told of
 * a hit. One that has printed counts as told. */
void hub_pad_bring_out(struct task *task);

/* What a thread in a pad is about to be brought out with. A slot that it owns has nothing to print: it is given back.
 * True: the thread has printed, or its condition does not hold. */
bool hub_pad_give_back(const struct hub_space *space, const struct hub_pad *pad,
		       const struct user_regs_struct *registers);

#endif
