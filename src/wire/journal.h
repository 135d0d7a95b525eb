/* The journal: where the text of a process was changed, and how. It lies in the memory of shared.h. */
#ifndef KYMO_WIRE_JOURNAL_H
#define KYMO_WIRE_JOURNAL_H

#include <stdint.h>

#include "base/page.h"

/* ---- words ----------------------------------------------------------------------------------- */

/*
 * What others than the recorder change, or one process differently from its forked children. A word for each journal
 * entry follows: of a pad that was put before another one, where it goes on; of a switch without a gate, enum
 * kymo_wire_count, and the counter's value before in bits 16 to 31; else 0.
 */
struct kymo_wire_words {
	uint64_t generation; /* goes up when the recording leaves; to be added to the header's */
	uint64_t is_leaving; /* it is being taken out: nothing is handed over to it */
	uint64_t n_regions;  /* that this process has: a forked child does not get those that its parent's recorder adds
				later */
	uint64_t reserved[5];
};

/* Bytes of the words' mapping for a journal of that capacity; where in it the word of an entry is. */
static inline uint64_t kymo_wire_words_size(uint64_t capacity)
{
	return kymo_page_up(sizeof(struct kymo_wire_words) + capacity * sizeof(uint64_t));
}

static inline uint64_t kymo_wire_word_offset(uint64_t entry)
{
	return sizeof(struct kymo_wire_words) + entry * sizeof(uint64_t);
}

/* ---- journal --------------------------------------------------------------------------------- */

#define KYMO_WIRE_PATCH_MAX 15
#define KYMO_WIRE_WINDOW_MAX 24

enum kymo_wire_site_flags {
	KYMO_WIRE_EVICTED = 1,     /* no probe: it makes room for the jump of the next entry */
	KYMO_WIRE_GUARD = 2,       /* one of kymo's own (arch/pad.h) */
	KYMO_WIRE_STANDBY = 4,     /* a guard that another recording's stands in for, until that one leaves */
	KYMO_WIRE_WANTS_FLAGS = 8, /* its pad, or one after it, reads the flags out of the frame */
	KYMO_WIRE_SWITCH = 16,     /* no pad: what turns a marker on (probe/site/switches.c) */
	KYMO_WIRE_GATE =
		32, /* a switch whose counter is the `outside` of a struct kymo_marker_gate: a bit for each recording */
	KYMO_WIRE_JIT = 64,    /* in memory of no file, which the program has put code into */
	KYMO_WIRE_CATCH = 128, /* no probe: it leads into the clone of a function */
};

/* The state of a switch's counter. If a recorder dies between two of these, the next one compares the counter with its
 * value before. */
enum kymo_wire_count {
	KYMO_WIRE_COUNT_NONE,
	KYMO_WIRE_COUNT_UP,   /* is being counted up */
	KYMO_WIRE_COUNT_IN,   /* was counted up */
	KYMO_WIRE_COUNT_DOWN, /* is being counted down */
};

/*
 * One place in the text, as one recording has it. All is complete before the text is written and never changed
 * afterwards.
 *
 * Several recordings may have the same place. `link` is the one jump that leads to pads: at the place itself, or the
 * trampoline that the text's jump leads to. It leads to the `entry` of one recording's pad, which goes on to the
 * `inner` entry of the next one's, and so on; the last goes on to its own `displaced` instructions. A pad that was put
 * before another one goes where its word says, which changes when that one leaves.
 *
 * A switch (KYMO_WIRE_SWITCH) has no pad, and no place in a chain: its bytes are the same for every recording, and stay
 * as long as a counter says that a party wants them.
 */
struct kymo_wire_site {
	uint64_t address;
	uint64_t link; /* a jmp rel32 */
	uint64_t pad;
	uint32_t pad_size;
	uint32_t event_id;  /* of its first event */
	uint64_t entry;     /* the link leads there */
	uint64_t inner;     /* another recording's pad goes on there, its frame in place */
	uint64_t displaced; /* the pad's own way out, with a frame */
	uint64_t hop;       /* of a pad that was put before another: the jump to `next`, with that in rax; else 0 */
	uint64_t next; /* of such a pad, at first: its word has it since; of a switch: the address of a 16-bit counter;
			  else 0 */
	uint8_t original[KYMO_WIRE_WINDOW_MAX];
	uint8_t patched[KYMO_WIRE_PATCH_MAX];
	uint8_t patch_size; /* bytes changed at `address` */
	uint8_t window;     /* bytes displaced */
	uint8_t lock_size;  /* bytes from `address` that are part of jumps, or of the window */
	uint8_t tactic;     /* enum kymo_tactic */
	uint8_t flags;
	uint32_t state; /* of a gate: the recording's bit; of another switch its word has it; else 0 */
	uint64_t inode; /* of the file whose text it is */
	char name[56];
	uint64_t reserved2;
};

_Static_assert(sizeof(struct kymo_wire_site) == 192, "journal entries are 192 bytes");

#endif
