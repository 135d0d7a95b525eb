/*
 * The memory that a target and its recorder share: one memfd, mapped in both.
 *
 *	offset 0		struct kymo_wire_header
 *	journal_offset		struct kymo_wire_site [journal_capacity]
 *	rings_offset		struct kymo_wire_ring [n_rings], KYMO_WIRE_RING_STRIDE apart
 *	(each ring's data_offset)	its sub-buffers
 *	(each region's offset)	code pads
 *
 * Everything up to the pads is one read-write mapping in the target, at header.address. Pads are mapped read-execute near the
 * code that they serve; one page in each such region is private and anonymous: the `live` page (arch/pad.h), which tells
 * the process that is recorded from its forked children, where MADV_WIPEONFORK made it zero.
 *
 * Who trusts whom: generated code in the target relies on its own rings. The recorder relies on nothing here; it keeps its own
 * copy of the geometry and checks every value that it reads. `kymo detach` reads the journal of a process whose recorder died, with the
 * rights of its own caller over that process, so a lying journal can only make a process harm itself.
 *
 * All numbers are little endian. The layout is versioned by KYMO_WIRE_VERSION: a kymo that finds another version says so and
 * leaves the process alone.
 */
#ifndef KYMO_WIRE_SHARED_H
#define KYMO_WIRE_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define KYMO_WIRE_MEMFD_NAME "kymo"		/* shows as "/memfd:kymo (deleted)" in maps */
#define KYMO_WIRE_MAGIC 0x316f6d796bull		/* "kymo1" */
#define KYMO_WIRE_VERSION 1u

#define KYMO_WIRE_MAX_REGIONS 256
#define KYMO_WIRE_MAX_SUBBUFFERS 16

/* ---- header ---------------------------------------------------------------------------------------------------- */

/* A run of mappings in the target: memfd pages read-execute, then the live page, then one more memfd page, so that the anonymous page
 * is known as kymo's by its two neighbours. Written here before it is mapped. */
struct kymo_wire_region {
	uint64_t address;
	uint64_t size;		/* all of it */
	uint64_t live;		/* address of the live page */
	uint64_t offset;	/* in the memfd */
};

struct kymo_wire_header {
	uint64_t magic;
	uint32_t version;
	uint32_t recorder_pid;
	uint64_t recorder_start;	/* field 22 of /proc/PID/stat: tells a reused pid */
	uint64_t started_wall_ns;
	uint64_t address;		/* of this header in the target */
	uint64_t size;			/* of the read-write mapping */
	uint64_t journal_offset;
	uint64_t journal_capacity;
	uint64_t n_sites;		/* valid journal entries; stored after the entry is complete */
	uint64_t rings_offset;
	uint64_t window;		/* all pads once more, read-execute; regions are made of it by mremap */
	uint64_t window_size;
	uint64_t window_offset;		/* in the memfd */
	uint32_t n_rings;
	uint32_t n_regions;
	uint32_t target_pid;
	uint32_t overwrite;
	uint64_t recorded_bytes;	/* for kymo status; by the recorder, twice a second */
	uint64_t lost_events;
	char directory[256];
	struct kymo_wire_region regions[KYMO_WIRE_MAX_REGIONS];
};

/* Whether a header found in a mapping of `size` bytes at `address` can be one of this version: every offset and count in it is within
 * the mapping. Pure. */
int kymo_wire_header_is_sane(const struct kymo_wire_header *header, uint64_t address, uint64_t size);

/* ---- journal --------------------------------------------------------------------------------------------------- */

#define KYMO_WIRE_PATCH 5

/* One text change: complete before the text is written, and never changed afterwards. */
struct kymo_wire_site {
	uint64_t address;
	uint64_t pad;
	uint32_t pad_size;
	uint32_t event_id;		/* of its first event */
	uint8_t original[KYMO_WIRE_PATCH];
	uint8_t patched[KYMO_WIRE_PATCH];
	uint8_t window;			/* bytes displaced */
	uint8_t tactic;			/* enum kymo_tactic */
	uint32_t reserved;
	char name[80];
	uint64_t inode;			/* of the file whose text it is */
};

_Static_assert(sizeof(struct kymo_wire_site) == 128, "journal entries are 128 bytes");

/* ---- vfork ------------------------------------------------------------------------------------------------------------- */

#define KYMO_WIRE_MAX_VFORKS 15

/* Threads that wait for a child which runs with their thread control block; in the page before the rings. */
struct kymo_wire_vforks {
	uint32_t n;		/* of them; or more, when some thread can't be told from others for good: then no sequence is used */
	uint32_t reserved;
	uint64_t threads[KYMO_WIRE_MAX_VFORKS];	/* their thread pointers, or 0 */
};

#define KYMO_WIRE_VFORKS_BEFORE_RINGS 4096

/* ---- rings ----------------------------------------------------------------------------------------------------- */

/* What is known of one sub-buffer; written by the producer that opens and closes it. */
struct kymo_wire_subbuffer {
	uint64_t sequence;	/* of the packet in it */
	uint64_t tsc_begin, tsc_end;
	uint64_t size;		/* bytes of records, when closed */
	uint64_t lost;		/* running total of the ring when closed */
};

/*
 * A ring of sub-buffers, with one producer at a time. Of some rings it is whoever turned `lock` from 0 to 1 with an exchange. Nobody waits for a lock: a
 * producer that finds one taken (its holder was preempted, or is this very thread below a signal handler) goes to another ring. The producers
 * of the others are the restartable sequences of one CPU; only who changes the sub-buffer takes the lock, and sets `end` to 0 in a sequence first.
 *
 * Records are written at `cur` and count as soon as `cur` is moved behind them, so a thread that dies in the middle leaves no hole.
 * Offsets are relative to the ring's own address.
 */
struct kymo_wire_ring {
	/* the line that each record touches */
	uint32_t lock;
	uint32_t is_open;	/* a packet is being filled */
	uint64_t cur;		/* where the next record goes */
	uint64_t end;		/* where the current sub-buffer ends; 0 when no packet is open */
	uint64_t last_tsc;	/* stamps of one ring never go back */
	uint64_t lost;		/* events, running total; added to atomically, also without the lock */
	uint64_t opened;	/* packets opened so far; packet n lies in sub-buffer n % n_subbuffers */
	uint64_t closed;	/* packets complete; stored after the packet's subbuffer entry */
	uint64_t data_offset;

	/* the recorder's line */
	uint64_t consumed __attribute__((aligned(64)));	/* packets copied out */
	uint32_t n_subbuffers;
	uint32_t overwrite;
	uint64_t subbuffer_size;
	uint32_t cpu;		/* whose sequences are the producers */
	uint32_t is_sequenced;	/* they are */

	struct kymo_wire_subbuffer subbuffers[KYMO_WIRE_MAX_SUBBUFFERS] __attribute__((aligned(64)));
};

#define KYMO_WIRE_RING_STRIDE 1024
_Static_assert(sizeof(struct kymo_wire_ring) <= KYMO_WIRE_RING_STRIDE, "a ring's control block fits its stride");
_Static_assert(offsetof(struct kymo_wire_ring, consumed) == 64, "producers and recorder do not share a line");

#endif
