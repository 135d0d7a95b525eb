/*
 * Which memory of a process can be read by plain loads (docs/design/fast-reads.md). At the end of the data memory,
 * where the recording has it. Pads use it within sequences, or with all signals blocked; a forked child has none.
 *
 * What the recorder finds here may be anything: it uses no number of it as an index, and adds what the maps say.
 */
#ifndef KYMO_WIRE_READABLE_H
#define KYMO_WIRE_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KYMO_WIRE_WANTED 64
#define KYMO_WIRE_READERS 1024     /* a power of two: slots go in pairs */
#define KYMO_WIRE_READABLE_GIB 32u /* a power of two: GiB number g is in block g % 32 or in none */
#define KYMO_WIRE_READABLE_CODE 192u
#define KYMO_WIRE_GIB_SHIFT 30
#define KYMO_WIRE_GIB_PAGES (1u << (KYMO_WIRE_GIB_SHIFT - 12))

#define KYMO_WIRE_PAGE_PROPOSED 1
#define KYMO_WIRE_PAGE_READABLE 2

#define KYMO_WIRE_READABLE_OPEN UINT64_C(1) /* of `state`; closings count by twos */

/* A thread that reads. */
struct kymo_wire_reader {
	uint64_t thread;  /* its thread pointer, or 0: the slot is free */
	uint64_t address; /* what it reads now; 0: nothing */
};

/* Addresses. */
struct kymo_wire_range {
	uint64_t low, high;
};

struct kymo_wire_readable {
	uint64_t state;
	uint64_t begun, ended;       /* calls that may take memory away */
	uint64_t is_closed_for_good; /* the recorder must not open it any more */
	uint64_t reserved[4];
	uint64_t wanted[KYMO_WIRE_WANTED];    /* page numbers that a read has not found, at number % KYMO_WIRE_WANTED */
	uint64_t gib[KYMO_WIRE_READABLE_GIB]; /* which GiB the block is for: its number + 1; 0: none. Then it has memory
					       */
	uint64_t reserved2[24];
	struct kymo_wire_reader readers[KYMO_WIRE_READERS];
	struct kymo_wire_range code[KYMO_WIRE_READABLE_CODE]; /* while it is open: all that is executable; 0: unused */
	uint8_t pages[KYMO_WIRE_READABLE_GIB][KYMO_WIRE_GIB_PAGES]; /* 0, or KYMO_WIRE_PAGE_… */
};

_Static_assert(offsetof(struct kymo_wire_readable, readers) == 1024, "slots in pairs begin at a multiple of 32");
_Static_assert(offsetof(struct kymo_wire_readable, pages) == 5 * 4096, "blocks are whole pages");

/* Both are inlined everywhere: code in targets calls nothing outside of its section. */
#define KYMO_WIRE_INLINE static inline __attribute__((always_inline))

/* No reader begins any more, until the recorder opens the table again. Whether it was open. */
KYMO_WIRE_INLINE bool kymo_wire_close_readable(struct kymo_wire_readable *table)
{
	uint64_t state = __atomic_load_n(&table->state, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&table->state, &state, (state & ~KYMO_WIRE_READABLE_OPEN) + 2, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return state & KYMO_WIRE_READABLE_OPEN;
}

/* How many calls that may take memory away are under way, and in `begun_ret` how many have begun. The order of the
 * loads matters: each call begins before it ends, so none that runs between the two is missed. */
KYMO_WIRE_INLINE uint64_t kymo_wire_losses_under_way(const struct kymo_wire_readable *table, uint64_t *begun_ret)
{
	const uint64_t ended = __atomic_load_n(&table->ended, __ATOMIC_SEQ_CST);

	*begun_ret = __atomic_load_n(&table->begun, __ATOMIC_SEQ_CST);
	return *begun_ret - ended;
}

#endif
