/* What pads call to make a system call that takes memory away; as a C function for tests. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GUEST_STRIKE_H
#define KYMO_ARCH_X86_64_GUEST_STRIKE_H

#include <stdint.h>

/* The program's registers, as a pad has saved them, and as the entry has. */
struct kymo_guest_frame {
	uint64_t rdx, rax, r10, r11;
};

struct kymo_guest_saved {
	uint64_t r9, r8, rdi, rsi, rcx;
};

/* In rax and rdx. */
struct kymo_guest_call {
	int64_t result; /* as the kernel gives it, where the call was made */
	int64_t is_made;
};

/* Make the call, if it takes memory away, after that was struck from the table of the live page. All signals are
 * blocked meanwhile. Other calls, and those that may sleep, are left to the caller. */
struct kymo_guest_call kymo_guest_strike(const struct kymo_guest_frame *frame, const char *live, uint64_t unused,
					 const struct kymo_guest_saved *saved);

#endif
