/*
 * The memory of a recording's rings. Private to the library; x86-64 only.
 */
#ifndef KYMO_LIB_RECORD_RINGS_H
#define KYMO_LIB_RECORD_RINGS_H

#include <sys/types.h>

#include "arch/pad.h"
#include "markers.h"
#include "ring/ring.h"
#include "trace/trace.h"

/*
 * What the slots of recorded markers point to, on a page of its own that is never unmapped. Producers rely on it; it
 * does not change once it is in a slot, but for the last words, which are futexes.
 */
struct record_rings {
	struct kymo_marker_rings rings;        /* compiled code knows this much */
	const struct kymo_pad_rings *geometry; /* after this struct, and for ever, too */
	struct kymo_wire_ring *locked;         /* the rings with locks: one a CPU, then spare ones */
	uint32_t n_locked, n_cpus;
	uint32_t has_rdpid;
	pid_t pid; /* the process that the writer is a thread of */

	uint32_t is_asleep;  /* the writer waits for something to do: a thread that sets it to 0 wakes it */
	uint32_t is_ending;  /* the writer is to end */
	uint32_t is_at_exit; /* and the process with it */
	uint32_t is_done;    /* it has written the whole trace */
	int32_t writer;      /* its thread id, once it runs */
};

/* The writer's view of them. */
struct record_memory {
	struct record_rings *shared;
	size_t size; /* of the mapping that begins with `shared` */
	size_t n_rings;
	struct kymo_ring *rings;               /* those for sequences, if any, then those with locks */
	struct kymo_trace_position *positions; /* where each ring's packets go */
};

#define RECORD_BUFFER_MIN (UINT64_C(64) << 10)
#define RECORD_BUFFER_MAX (UINT64_C(4) << 30)
#define RECORD_BUFFER_DEFAULT (UINT64_C(4) << 20)

/* Ask the loader where threads have their ids. Once, before a lock is held. */
void kymo_record_find_threads(void);

/* Map and populate rings of `buffer_size` bytes a CPU. -ENOMEM. */
int kymo_record_memory_create(uint64_t buffer_size, struct record_memory *ret);

/* The rings of locations that are not recorded any more. */
const struct kymo_marker_rings *kymo_record_idle(void);

/* End all writing into the rings, permanently. False where some thread may be writing still: one that was interrupted
 * within a moment of it, by a handler that does not return. */
bool kymo_record_memory_seal(struct record_memory *memory);

/* Give the memory back, but for the page that is for ever; only when it is sealed (`is_sealed`), else all of it stays.
 * Producers that come late find rings without room. */
void kymo_record_memory_release(struct record_memory *memory, bool is_sealed);

/* In the child of a fork(), which has the mapping, wiped but for the first page: make rings without room of it. */
void kymo_record_memory_forked(struct record_rings *rings);

#endif
