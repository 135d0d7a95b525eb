/* Flags in which single steps show: instructions that push and pop them. Public header of the room, beside code.h.
 * Pure. */
#ifndef KYMO_ARCH_FLAGS_H
#define KYMO_ARCH_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* What an instruction does with them. */
struct kymo_flags_step {
	uint8_t pushed; /* bytes that it pushes; 0: it pushes none */
	uint8_t popped; /* likewise */
	uint8_t length; /* of such an instruction, in bytes */
};

/* The instruction at the beginning of `bytes`; all 0 for one that does neither. */
struct kymo_flags_step kymo_flags_step_of(const uint8_t *bytes, size_t size);

/* Whether the program itself has turned single steps on. */
bool kymo_flags_are_own(const struct user_regs_struct *registers);

/*
 * Execute an instruction that pops flags, of which `value` is on top of the stack, in `registers`. The kernel takes a
 * step over it for the program's own request to be stepped, and leaves stepping on. False: it is such a request, or
 * nothing of the kind can be done where the thread stands. Nothing is changed then.
 */
bool kymo_flags_pop(const struct kymo_flags_step *step, uint64_t value, struct user_regs_struct *registers);

/* Flags that were pushed while the kernel had single steps on, as the program would have them. True: they are others
 * now. */
bool kymo_flags_clean(uint16_t *flags);

#endif
