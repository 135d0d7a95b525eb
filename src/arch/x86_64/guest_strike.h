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

/* Make the call, after what it takes away was struck from the table of the live page; its result, as the kernel gives
 * it. All signals are blocked meanwhile. */
int64_t kymo_guest_strike(const struct kymo_guest_frame *frame, const char *live, uint64_t unused,
			  const struct kymo_guest_saved *saved);

#endif
