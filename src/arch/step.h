/* One instruction as a thread executes it by a single step. Public header of the room, beside code.h. Pure. */
#ifndef KYMO_ARCH_STEP_H
#define KYMO_ARCH_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define KYMO_STEP_BYTES 15 /* of the longest instruction */

enum kymo_step_kind {
	KYMO_STEP_NEXT,        /* goes on to the next instruction, or to itself (repeated string instructions) */
	KYMO_STEP_CONDITIONAL, /* goes on to the next instruction, or to another */
	KYMO_STEP_JUMP,
	KYMO_STEP_CALL,
	KYMO_STEP_RETURN,
	KYMO_STEP_SYSCALL, /* goes on to the next instruction, but where the kernel leads elsewhere */
};

struct kymo_step {
	enum kymo_step_kind kind;
	uint8_t length;       /* bytes */
	uint8_t pushed_flags; /* bytes of the flags that it pushes; 0: it pushes none */
	uint8_t popped_flags; /* likewise */
};

/* The instruction at the beginning of `bytes`. -EINVAL: they are none, or not all of one. */
int kymo_step_of(const uint8_t *bytes, size_t size, struct kymo_step *ret);

/* Whether it leads from `from` to `to`, where the thread has been seen before and after it, by a branch that was taken.
 */
bool kymo_step_branches(const struct kymo_step *step, uint64_t from, uint64_t to);

uint64_t kymo_step_pc(const struct user_regs_struct *registers);
uint64_t kymo_step_sp(const struct user_regs_struct *registers);

/* Whether the program itself has turned single steps on. */
bool kymo_step_is_own(const struct user_regs_struct *registers);

/*
 * Execute an instruction that pops flags, of which `value` is on top of the stack, in `registers`. The kernel takes a
 * step over it for the program's own request to be stepped, and leaves that on for good. False: it is such a request,
 * or nothing of the kind can be done where the thread stands. Nothing is changed then.
 */
bool kymo_step_pop_flags(const struct kymo_step *step, uint64_t value, struct user_regs_struct *registers);

/* Flags that were pushed while the kernel had single steps on, as the program would have them. True: they are others
 * now. */
bool kymo_step_clean_flags(uint16_t *flags);

#endif
