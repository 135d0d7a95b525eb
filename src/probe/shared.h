/*
 * The shared memory: making it in a target, and the controller's own view of it. Private to the room.
 */
#ifndef KYMO_PROBE_SHARED_H
#define KYMO_PROBE_SHARED_H

#include "base/error.h"
#include "probe/session.h"
#include "proc/proc.h"
#include "wire/shared.h"

#define KYMO_JOURNAL_CAPACITY (1u << 18)
#define KYMO_WINDOW_SIZE ((uint64_t)256 << 20)

struct kymo_shared {
	int fd;
	struct kymo_wire_header *header;	/* the controller's mapping of everything but pads; written only: the target may write it too */
	uint64_t n_sites;			/* of the journal */
	uint32_t n_regions;
	uint64_t live[KYMO_WIRE_MAX_REGIONS];	/* the live page of each */
	uint64_t size;				/* of that mapping */
	uint64_t address;			/* of the header in the target */
	uint64_t window;			/* all pads, in the target */
	bool is_sequenced;			/* the first n_cpus rings are driven by restartable sequences; set before kymo_shared_create() */
	uint32_t n_cpus, n_sequenced, n_rings;
	uint64_t rings_offset;
	uint64_t pads_used;			/* bytes of the window */
};

/* Make the memfd in the stopped process and map header, journal, rings and the window; nothing of it is allocated yet. */
struct kymo_error *kymo_shared_create(struct kymo_process *process, const struct kymo_probes_options *options,
				      struct kymo_shared *ret);
void kymo_shared_deinit(struct kymo_shared *shared);

/* Allocate the rings' memory, so that no producer can fault on it, and lay the rings out. The process may run. */
struct kymo_error *kymo_shared_format(struct kymo_shared *shared, const struct kymo_probes_options *options);

/* Geometry of ring `i`: CPUs' own rings first, then the spare ones. */
struct kymo_shared_ring kymo_shared_ring(const struct kymo_shared *shared, const struct kymo_probes_options *options,
					 size_t i);

/* Append entries to the journal; they count when this returns. FAILED when it is full. */
struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, const struct kymo_wire_site *sites, size_t n);

/* Map a region of `size` bytes at `address` (free, checked by the caller) in the stopped process, thread borrowed: pads from
 * window offset `at`, the live page, a last page. Its live byte is set to `state` and offset. */
struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process, uint64_t address,
					  uint64_t size, uint64_t at);

#endif
