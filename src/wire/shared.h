/*
 * The memory that a target and its recorder share: two memfds, mapped in both (docs/internals/memory.md).
 *
 * "kymo", of which the target can make no writable mapping that others share:
 *
 *	offset 0		struct kymo_wire_header
 *	trampolines_offset		struct kymo_wire_trampolines [KYMO_WIRE_MAX_TRAMPOLINES]
 *	journal_offset		struct kymo_wire_site [journal_capacity]
 *	size			struct kymo_wire_words, then a word for each entry of the journal
 *	(each region's offset)	code pads
 *
 * Everything up to `size` is one read-only mapping in the target, at header.address. The words follow it in a private
 * mapping: each process has its own. Pads are mapped read-execute near the code that they serve; one page in each such
 * region is private and anonymous: the `live` page (arch/pad.h), which tells the process that is recorded from its
 * forked children, where MADV_WIPEONFORK made it zero.
 *
 * "kymo-data", at header.data_address, read-write; a forked child has none of it, or another one at the same address:
 *
 *	offset 0		struct kymo_wire_data
 *	KYMO_WIRE_RINGS_OFFSET	struct kymo_wire_ring [n_rings], KYMO_WIRE_RING_STRIDE apart
 *	(each ring's data_offset)	its sub-buffers
 *	readable_address	struct kymo_wire_readable, where pads read by it: wire/readable.h
 *
 * "kymo-arena", at header.arena_address, read-write, only where the regions have function clones: wire/clones.h.
 *
 * Which side trusts which: generated code in the target relies on its own rings. The recorder relies on nothing here;
 * it keeps its own copy of the geometry and checks every value that it reads. `kymo detach` reads the journal of a
 * process whose recorder died, with its caller's privileges over that process. It checks the journal against the mapped
 * files: a process can put memory of its own in the place of this.
 *
 * All numbers are little endian. The layout is versioned by KYMO_WIRE_VERSION: a kymo that finds another version says
 * so and leaves the process alone.
 */
#ifndef KYMO_WIRE_SHARED_H
#define KYMO_WIRE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/journal.h"
#include "wire/ring.h"

#define KYMO_WIRE_MEMFD_NAME "kymo" /* shows as "/memfd:kymo (deleted)" in maps */
#define KYMO_WIRE_DATA_NAME "kymo-data"
#define KYMO_WIRE_JUMPS_NAME "kymo-jumps" /* what trampolines are mapped from */
#define KYMO_WIRE_ARENA_NAME "kymo-arena" /* rings of function clones: wire/clones.h */
#define KYMO_WIRE_MEMFD_PATH "/memfd:" KYMO_WIRE_MEMFD_NAME
#define KYMO_WIRE_DATA_PATH "/memfd:" KYMO_WIRE_DATA_NAME
#define KYMO_WIRE_JUMPS_PATH "/memfd:" KYMO_WIRE_JUMPS_NAME
#define KYMO_WIRE_ARENA_PATH "/memfd:" KYMO_WIRE_ARENA_NAME
#define KYMO_WIRE_MAGIC 0x316f6d796bull /* "kymo1" */
#define KYMO_WIRE_VERSION 10u

#define KYMO_WIRE_MAX_REGIONS 1024
#define KYMO_WIRE_MAX_TRAMPOLINES 16384
#define KYMO_WIRE_MAX_SITES (1u << 18)
#define KYMO_WIRE_RINGS_OFFSET 4096 /* in the data memory */

/* ---- header ---------------------------------------------------------------------------------- */

/* A run of mappings in the target: memfd pages read-execute, then the live page, then more memfd pages, so that the
 * anonymous page is known as kymo's by its two neighbors. Written here before it is mapped. */
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
struct kymo_wire_trampolines {
	uint64_t address, size;
};

/*
 * A thread that has loaded a library, before anything of it runs: it waits a moment for the recorder to put probes in.
 * It adds 1 to `requests` and waits until `answers` has come that far; when that takes too long it sets `given_up`, and
 * no thread waits any more until the recorder clears that, but each adds its 1. A recording that leaves sets both.
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
	uint64_t recorder_pidns; /* inode of the recorder's /proc/PID/ns/pid: what pids here are numbers of; 0: not
				    known */
	uint64_t started_wall_ns;
	uint64_t address; /* of this header in the target */
	uint64_t size;    /* of the read-only mapping; the words come after it */
	uint64_t journal_offset;
	uint64_t journal_capacity;
	uint64_t n_sites;     /* valid journal entries; stored after the entry is complete */
	uint64_t generation;  /* goes up with each change of the journal; the words have one, too */
	uint64_t n_installed; /* of those, how many have been in the text, with all that they need */
	uint64_t trampolines_offset;
	uint64_t n_trampolines;
	uint64_t data_address; /* of the data's mapping */
	uint64_t data_size;
	uint64_t vforks; /* in the target: struct kymo_wire_vforks of this recording */
	uint64_t window; /* all pads once more, read-execute; regions are made of it by mremap */
	uint64_t window_size;
	uint64_t window_offset;    /* in the memfd */
	uint64_t arena_address;    /* of the rings of function clones, which the regions have in place of pads; or 0 */
	uint64_t readable_address; /* of struct kymo_wire_readable, in the data's mapping; or 0 */
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

/*
 * What says which hits of a probe are recorded, where not all are (arch/pad.h): a count, or a stamp. In the live page
 * of the first region, so that each process has its own; zero at first, or what the recorder begins it with.
 */
struct kymo_wire_sample {
	uint64_t word;
} __attribute__((aligned(64)));

#define KYMO_WIRE_SAMPLES 32

/* ---- vfork ----------------------------------------------------------------------------------- */

#define KYMO_WIRE_MAX_VFORKS 15

/* Threads that wait for a child which runs with their thread control block; in the live page of the first region, so
 * that each process has its own. */
struct kymo_wire_vforks {
	uint32_t n; /* of them; or more, if some thread can never be told from others: then no sequence is used */
	uint32_t reserved;
	uint64_t threads[KYMO_WIRE_MAX_VFORKS]; /* their thread pointers, or 0 */
};

/* ---- paths ----------------------------------------------------------------------------------- */

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
	return kymo_wire_is_shared_path(path) || kymo_wire_is_data_path(path) || !strcmp(path, KYMO_WIRE_JUMPS_PATH) ||
	       !strcmp(path, KYMO_WIRE_ARENA_PATH);
}

#endif
