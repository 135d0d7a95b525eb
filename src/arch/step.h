/* One instruction as a thread executes it by a single step. Public header of the room, beside code.h. Pure. */
#ifndef KYMO_ARCH_STEP_H
#define KYMO_ARCH_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/flags.h"

#define KYMO_STEP_BYTES 15 /* of the longest instruction */

enum kymo_step_kind {
	KYMO_STEP_NEXT,        /* goes on to the next instruction, or to itself (repeated string instructions) */
	KYMO_STEP_CONDITIONAL, /* goes on to the next instruction, or to another */
	KYMO_STEP_JUMP,
	KYMO_STEP_CALL,
	KYMO_STEP_RETURN,
	KYMO_STEP_SYSCALL, /* goes on to the next instruction, unless the kernel leads elsewhere */
};

struct kymo_step {
	enum kymo_step_kind kind;
	uint8_t length; /* bytes */
	struct kymo_flags_step flags;
};

/* The instruction at the beginning of `bytes`. -EINVAL: they are none, or not all of one. */
int kymo_step_of(const uint8_t *bytes, size_t size, struct kymo_step *ret);

/* Whether it leads from `from` to `to`, where the thread has been seen before and after it, by a branch that was taken.
 */
bool kymo_step_branches(const struct kymo_step *step, uint64_t from, uint64_t to);

uint64_t kymo_step_pc(const struct user_regs_struct *registers);
uint64_t kymo_step_sp(const struct user_regs_struct *registers);

/* Whether an instruction that calls, of two to seven bytes, ends at the end of `bytes`. False where `size` is less. */
bool kymo_step_ends_call(const uint8_t *bytes, size_t size);

#endif
