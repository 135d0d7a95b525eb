/*
 * The shared memory: making it in a target, and the controller's own view of it. Private to the room.
 */
#ifndef KYMO_PROBE_SHARED_H
#define KYMO_PROBE_SHARED_H

#include "base/error.h"
#include "probe/session.h"
#include "proc/proc.h"
#include "wire/shared.h"

#define KYMO_JOURNAL_CAPACITY KYMO_WIRE_MAX_SITES
#define KYMO_WINDOW_SIZE ((uint64_t)256 << 20)

struct kymo_shared {
	int fd;
	struct kymo_wire_header *header;	/* the controller's mapping of everything but pads; written only: the target may write it too */
	uint64_t n_sites;			/* of the journal */
	uint32_t n_regions;
	uint64_t n_runs;
	uint64_t generation;			/* of the journal */
	uint64_t inode;				/* of the memfd */
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

/* Where the table of runs and the journal begin in the shared memory. */
uint64_t kymo_shared_runs_offset(void);
uint64_t kymo_shared_journal_offset(void);

/* Append entries to the journal; they count when this returns. FAILED when it is full. */
struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, const struct kymo_wire_site *sites, size_t n);

/* memfd_create() in the stopped process, thread borrowed; its descriptor there. */
struct kymo_error *kymo_remote_memfd(struct kymo_process *process, const char *name, int64_t *fd_ret);

struct probe_region;
struct probe_layout;

/* Map a region (its addresses are free, checked by the caller) in the stopped process, thread borrowed: pads from the window, and the live page. */
struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process, const struct probe_region *region);

/*
 * Map trampolines, in the stopped process, thread borrowed: its other threads may run. `taken_ret`: something has been mapped there meanwhile; what was mapped here before
 * stays until the recording is taken out.
 */
struct kymo_error *kymo_shared_map_runs(struct kymo_shared *shared, struct kymo_process *process, const struct probe_layout *layout,
					bool *taken_ret);

/* All entries are in the text. */
void kymo_shared_installed(struct kymo_shared *shared);

/* Forget journal entries behind the first `n`: nothing of them is in the text. */
void kymo_shared_rewind(struct kymo_shared *shared, uint64_t n);

#endif
