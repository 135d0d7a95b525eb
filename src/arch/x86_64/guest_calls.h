/*
 * System calls that the code in targets makes for itself. To be included by the files of
 * guest.c's section alone. Private to arch/x86_64.
 */
#ifndef KYMO_ARCH_X86_64_GUEST_CALLS_H
#define KYMO_ARCH_X86_64_GUEST_CALLS_H

#include <stdint.h>

#include "arch/pad.h"

#define GUEST __attribute__((section("kymo_guest"), used, noinline, visibility("hidden")))
/* The same of what one file calls; in frames of their own, as the stack is the program's. */
#define GUEST_OWN static __attribute__((section("kymo_guest"), noinline))
#define GUEST_INLINE static inline __attribute__((always_inline))

GUEST_INLINE int64_t guest_call6(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* A word of the live page, which another process may change. */
GUEST_INLINE uint64_t guest_live_word(const char *live, unsigned int at)
{
	return __atomic_load_n((const uint64_t *)(const void *)(live + at), __ATOMIC_RELAXED);
}

/* struct rseq_cs of a reader, and after it what it is known by: others' may be there as well. */
struct guest_sequence {
	uint64_t flags, start, size, abort;
	uint64_t mark;
};

#define GUEST_SEQUENCE_MARK UINT64_C(0x52656164)

#endif
