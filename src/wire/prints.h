/*
 * What pads of breakpoints print: records in a memory that a process shares with the debugger stub
 * (docs/internals/gdb-pads.md). Any number of threads write, and one reads.
 *
 * Slots are taken in the order of their positions. Slot `position % n` has one of these states:
 *
 *	the position		free: a thread that finds `head` there takes it by moving `head` on, and then owns it
 *	the position + 1	its record is complete; the reader makes the state the position + n
 *
 * A thread that finds the record of a lap before, which was not read yet, counts a loss: nothing is free. An owner of a
 * lap before is late. The thread that finds one sets KYMO_WIRE_PRINT_SKIPPED in the state, while that is the owner's
 * still, and looks again. At all other states a thread moves `head` on, and looks at the next slot. These are a slot
 * that was skipped, and one that the reader has put off. The reader does so where a slot was skipped: its next position
 * is one that `head` has not come to.
 */
#ifndef KYMO_WIRE_PRINTS_H
#define KYMO_WIRE_PRINTS_H

#include <stdint.h>

#define KYMO_WIRE_PRINTS_SLOTS 4096 /* where slots begin; a multiple of each size of a slot */
#define KYMO_WIRE_PRINT_ARGS 8
#define KYMO_WIRE_PRINT_TEXT 96        /* bytes of a string, with its NUL */
#define KYMO_WIRE_PRINT_SIZE_MAX 1024u /* of a slot, which is a power of two */
#define KYMO_WIRE_PRINT_SKIPPED (UINT64_C(1) << 63)
#define KYMO_WIRE_PRINT_VOID UINT32_MAX /* in place of `number`: there is nothing in the slot */
#define KYMO_WIRE_PRINTS_MAX (1u << 20) /* slots */

struct kymo_wire_prints {
	uint64_t head; /* the next position */
	uint64_t spare[7];
	uint64_t n_lost;
};

struct kymo_wire_print {
	uint64_t state;
	uint32_t number; /* which breakpoint's */
	uint32_t spare;
	uint64_t args[]; /* then KYMO_WIRE_PRINT_TEXT bytes for each that is a string */
};

/* Bytes of a slot for records of `n` arguments, `n_strings` of which are strings: a power of two. */
static inline uint32_t kymo_wire_print_size(uint32_t n, uint32_t n_strings)
{
	const uint32_t least = (uint32_t)sizeof(struct kymo_wire_print) + 8 * n + KYMO_WIRE_PRINT_TEXT * n_strings;
	uint32_t size = 32;

	while (size < least)
		size *= 2;
	return size;
}

/* How many slots of a size are in a memory: a power of two, or 0. */
static inline uint32_t kymo_wire_prints_slots(uint64_t size, uint32_t slot_size)
{
	uint32_t n = KYMO_WIRE_PRINTS_MAX;

	while (n && (size < KYMO_WIRE_PRINTS_SLOTS || (size - KYMO_WIRE_PRINTS_SLOTS) / slot_size < n))
		n /= 2;
	return n;
}

#endif
