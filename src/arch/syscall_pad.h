/*
 * Pads of system calls. Such a pad records the call. One that takes memory away it makes so that no thread faults that
 * reads the memory meanwhile (docs/design/fast-reads.md).
 *
 * Public header of the room, beside pad.h.
 */
#ifndef KYMO_ARCH_SYSCALL_PAD_H
#define KYMO_ARCH_SYSCALL_PAD_H

#include "arch/pad.h"

#define KYMO_PAD_SYSCALLS 512 /* call numbers are below this */

/* The events of system calls: at the entry an event with six x64, by its number; at the exit one with an s64. */
struct kymo_pad_syscalls {
	uint64_t wanted[KYMO_PAD_SYSCALLS / 64];
	uint32_t first_id; /* of the entry of call 0; of call n, first_id + n; 0: nothing is recorded */
	uint32_t exit_id;
	bool strikes; /* calls of kymo_pad_strikes() are made by the shared code, which strikes what they take away */
};

/* Whether memory of the process may be gone after the call (wire/readable.h), also as x32 numbers it. Those that
 * wait for nothing may be made by other code in place of the program's. */
bool kymo_pad_strikes(uint32_t number);

/* The most bytes below the stack pointer that such a call takes: threads that run on small stacks make none. */
#define KYMO_PAD_STRIKE_STACK_MAX 640

/* Whether the plan displaces a `syscall` and nothing else. */
bool kymo_pad_is_syscall(const struct kymo_plan *plan);

/* Write the pad of a system call; as kymo_pad_emit(), with room for kymo_pad_size_max(1). It ends its chain. */
int kymo_pad_emit_syscall(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
			  const struct kymo_pad_syscalls *syscalls, uint8_t *out, size_t size,
			  struct kymo_pad_layout *ret);

#endif
