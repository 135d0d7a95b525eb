/*
 * The memory that a target and its recorder share: two memfds, mapped in both (docs/internals/memory.md).
 *
 * "kymo", of which the target can make no writable mapping that others share:
 *
 *	offset 0		struct kymo_wire_header
 *	runs_offset		struct kymo_wire_run [KYMO_WIRE_MAX_RUNS]
 *	journal_offset		struct kymo_wire_site [journal_capacity]
 *	size			struct kymo_wire_words, then a word for each entry of the journal
 *	(each region's offset)	code pads
 *
 * Everything up to `size` is one read-only mapping in the target, at header.address. The words follow it in a private
 *mapping: each process has its own. Pads are mapped read-execute near the code that they serve; one page in each such
 *region is private and anonymous: the `live` page (arch/pad.h), which tells the process that is recorded from its
 *forked children, where MADV_WIPEONFORK made it zero.
 *
 * "kymo-data", at header.data_address, read-write; a forked child has none of it, or another one at the same address:
 *
 *	offset 0		struct kymo_wire_data
 *	KYMO_WIRE_RINGS_OFFSET	struct kymo_wire_ring [n_rings], KYMO_WIRE_RING_STRIDE apart
 *	(each ring's data_offset)	its sub-buffers
 *
 * Who trusts whom: generated code in the target relies on its own rings. The recorder relies on nothing here; it keeps
 *its own copy of the geometry and checks every value that it reads. `kymo detach` reads the journal of a process whose
 *recorder died, with the rights of its own caller over that process, and checks it against the files that are mapped: a
 *process can put memory of its own in the place of this.
 *
 * All numbers are little endian. The layout is versioned by KYMO_WIRE_VERSION: a kymo that finds another version says
 *so and leaves the process alone.
 */
#ifndef KYMO_WIRE_SHARED_H
#define KYMO_WIRE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KYMO_WIRE_MEMFD_NAME "kymo" /* shows as "/memfd:kymo (deleted)" in maps */
#define KYMO_WIRE_DATA_NAME "kymo-data"
#define KYMO_WIRE_JUMPS_NAME "kymo-jumps" /* what trampolines are mapped from */
#define KYMO_WIRE_MEMFD_PATH "/memfd:" KYMO_WIRE_MEMFD_NAME
#define KYMO_WIRE_DATA_PATH "/memfd:" KYMO_WIRE_DATA_NAME
#define KYMO_WIRE_JUMPS_PATH "/memfd:" KYMO_WIRE_JUMPS_NAME
#define KYMO_WIRE_MAGIC 0x316f6d796bull /* "kymo1" */
#define KYMO_WIRE_VERSION 5u

#define KYMO_WIRE_MAX_REGIONS 1024
#define KYMO_WIRE_MAX_SUBBUFFERS 16
#define KYMO_WIRE_MAX_RUNS 16384
#define KYMO_WIRE_MAX_SITES (1u << 18)
#define KYMO_WIRE_RINGS_OFFSET 4096

/* ---- header ---------------------------------------------------------------------------------- */

/* A run of mappings in the target: memfd pages read-execute, then the live page, then more memfd pages, so that the
 * anonymous page is known as kymo's by its two neighbours. Written here before it is mapped. */
struct kymo_wire_region {
	uint64_t address;
	uint64_t size;   /* all of it */
	uint64_t live;   /* address of the live page */
	uint64_t offset; /* in the memfd */
};

/*
 * Private read-execute memory with trampolines: jumps at addresses that puns lead to. It belongs to every recording
 * that has it in its header, and goes with the last of them. Written here before it is mapped.
 */
struct kymo_wire_run {
	uint64_t address, size;
};

/*
 * A thread that has loaded a library, before anything of it runs: it waits a moment for the recorder to put probes in.
 * It adds 1 to `requests` and waits until `answers` has come that far; when that takes too long it sets `given_up`, and
 * nobody waits any more until the recorder clears that, but all add their 1. A recording that leaves sets both.
 */
struct kymo_wire_watch {
	uint32_t requests, answers, given_up;
	uint32_t signals; /* of `handlers`: 1 << each signal that a handler was about to be set for */
};

struct kymo_wire_header {
	uint64_t magic;
	uint32_t version;
	uint32_t recorder_pid;
	uint64_t recorder_start; /* field 22 of /proc/PID/stat: tells a reused pid */
	uint64_t started_wall_ns;
	uint64_t address; /* of this header in the target */
	uint64_t size;    /* of the read-only mapping; the words come behind it */
	uint64_t journal_offset;
	uint64_t journal_capacity;
	uint64_t n_sites;     /* valid journal entries; stored after the entry is complete */
	uint64_t generation;  /* goes up with each change of the journal; the words have one, too */
	uint64_t n_installed; /* of those, how many have been in the text, with all that they need */
	uint64_t runs_offset;
	uint64_t n_runs;
	uint64_t data_address; /* of the data's mapping */
	uint64_t data_size;
	uint64_t vforks; /* in the target: struct kymo_wire_vforks of this recording */
	uint64_t window; /* all pads once more, read-execute; regions are made of it by mremap */
	uint64_t window_size;
	uint64_t window_offset; /* in the memfd */
	uint32_t n_rings;
	uint32_t n_regions;
	uint32_t target_pid;
	uint32_t overwrite;
	uint64_t recorded_bytes; /* for kymo status; by the recorder, twice a second */
	uint64_t lost_events;
	char directory[256];
	struct kymo_wire_region regions[KYMO_WIRE_MAX_REGIONS];
};

/* Whether a header found in a mapping of `size` bytes at `address` can be one of this version: every offset and count
 * in it is within the mapping. Pure. */
int kymo_wire_header_is_sane(const struct kymo_wire_header *header, uint64_t address, uint64_t size);

/* ---- what pads change ------------------------------------------------------------------------ */

/* The head of the data memory. */
struct kymo_wire_data {
	uint64_t magic;
	uint32_t recorder_pid, target_pid;
	struct kymo_wire_watch watch;
	struct kymo_wire_watch handlers; /* the same of a thread that is about to set a handler of faults (sigaction) */
	uint64_t has_left;               /* the recording has been taken out, or is on its way */
	uint64_t is_muted; /* the program has forbidden itself to read the time stamp counter: it records nothing any
			      more */
	uint64_t lost_in_vforks; /* hits of vfork children, which record nothing; added to atomically by their pads */
};

_Static_assert(sizeof(struct kymo_wire_data) <= KYMO_WIRE_RINGS_OFFSET, "rings come behind the head");

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
	return (sizeof(struct kymo_wire_words) + capacity * sizeof(uint64_t) + 4095) & ~(uint64_t)4095;
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
	KYMO_WIRE_WANTS_FLAGS = 8, /* its pad, or one behind it, reads the flags out of the frame */
	KYMO_WIRE_SWITCH = 16,     /* no pad: what turns a marker on (probe/site/switches.c) */
	KYMO_WIRE_GATE =
		32, /* a switch whose counter is the `outside` of a struct kymo_marker_gate: a bit for each recording */
	KYMO_WIRE_MADE = 64, /* in memory of no file, which the program has put code into */
};

/* What has become of a switch's counter. Whoever dies between two of these is followed by somebody who compares the
 * counter with its value before. */
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
 * as long as a counter says that somebody wants them.
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

/* ---- vfork ----------------------------------------------------------------------------------- */

#define KYMO_WIRE_MAX_VFORKS 15

/* Threads that wait for a child which runs with their thread control block; in the live page of the first region, so
 * that each process has its own. */
struct kymo_wire_vforks {
	uint32_t
		n; /* of them; or more, when some thread can't be told from others for good: then no sequence is used */
	uint32_t reserved;
	uint64_t threads[KYMO_WIRE_MAX_VFORKS]; /* their thread pointers, or 0 */
};

/* ---- rings ----------------------------------------------------------------------------------- */

/* What is known of one sub-buffer; written by the producer that opens and closes it. */
struct kymo_wire_subbuffer {
	uint64_t sequence; /* of the packet in it */
	uint64_t tsc_begin, tsc_end;
	uint64_t size; /* bytes of records, when closed */
	uint64_t lost; /* running total of the ring when closed */
};

/*
 * A ring of sub-buffers, with one producer at a time. Of some rings it is whoever turned `lock` from 0 to 1 with an
 * exchange. Nobody waits for a lock: a producer that finds one taken (its holder was preempted, or is this very thread
 * below a signal handler) goes to another ring. The producers of the others are the restartable sequences of one CPU;
 * only who changes the sub-buffer takes the lock, and sets `end` to 0 in a sequence first.
 *
 * Records are written at `cur` and count as soon as `cur` is moved behind them, so a thread that dies in the middle
 * leaves no hole. Offsets are relative to the ring's own address.
 */
struct kymo_wire_ring {
	/* the line that each record touches */
	uint32_t lock;
	uint32_t is_open;  /* a packet is being filled */
	uint64_t cur;      /* where the next record goes */
	uint64_t end;      /* where the current sub-buffer ends; 0 when no packet is open */
	uint64_t last_tsc; /* stamps of one ring never go back */
	uint64_t lost;     /* events, running total; added to atomically, also without the lock */
	uint64_t opened;   /* packets opened so far; packet n lies in sub-buffer n % n_subbuffers */
	uint64_t closed;   /* packets complete; stored after the packet's subbuffer entry */
	uint64_t data_offset;

	/* the recorder's line */
	uint64_t consumed __attribute__((aligned(64))); /* packets copied out */
	uint32_t n_subbuffers;
	uint32_t overwrite;
	uint64_t subbuffer_size;
	uint32_t cpu;          /* whose sequences are the producers */
	uint32_t is_sequenced; /* they are */

	struct kymo_wire_subbuffer subbuffers[KYMO_WIRE_MAX_SUBBUFFERS] __attribute__((aligned(64)));
};

#define KYMO_WIRE_RING_STRIDE 1024
_Static_assert(sizeof(struct kymo_wire_ring) <= KYMO_WIRE_RING_STRIDE, "a ring's control block fits its stride");
_Static_assert(offsetof(struct kymo_wire_ring, consumed) == 64, "producers and recorder do not share a line");

/* Whether a mapping of that path, without " (deleted)", is of header, journal and pads; of what pads write; is anything
 * of kymo's. */
static inline bool kymo_wire_is_shared_path(const char *path)
{
	return !strcmp(path, KYMO_WIRE_MEMFD_PATH);
}

static inline bool kymo_wire_is_data_path(const char *path)
{
	return !strcmp(path, KYMO_WIRE_DATA_PATH);
}

static inline bool kymo_wire_is_own_path(const char *path)
{
	return kymo_wire_is_shared_path(path) || kymo_wire_is_data_path(path) || !strcmp(path, KYMO_WIRE_JUMPS_PATH);
}

#endif
