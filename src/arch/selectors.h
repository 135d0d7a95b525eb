/*
 * Segment selectors: they tell the mode that a thread runs in, and which words of a stack the kernel has saved there
 * for a signal handler. Public header of the room, beside code.h. Pure.
 */
#ifndef KYMO_ARCH_SELECTORS_H
#define KYMO_ARCH_SELECTORS_H

#include <stdbool.h>
#include <stdint.h>

/* `cs` of a thread that runs 64-bit code (arch/x86/include/asm/segment.h: __USER_CS). */
#define KYMO_CODE_SELECTOR 0x33

/* A program counter in struct sigcontext, the flags, and the selectors. The word before it is the stack pointer. */
#define KYMO_SAVED_WORDS 3

/* The general registers in struct sigcontext: as many words lie right before that program counter. */
#define KYMO_SAVED_REGISTERS 16

/* Whether words may be these, by the selector of the code. */
static inline bool kymo_may_be_saved(const uint64_t words[KYMO_SAVED_WORDS])
{
	return (words[2] & 0xffff) == KYMO_CODE_SELECTOR;
}

/* Whether all of the selectors, cs, gs, fs and ss, are as the kernel saves them. */
static inline bool kymo_is_saved(const uint64_t words[KYMO_SAVED_WORDS])
{
	return words[2] == UINT64_C(0x002b000000000033);
}

#endif
