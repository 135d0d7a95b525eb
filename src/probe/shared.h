/*
 * The shared memory: making it in a target, and the controller's own view of it. Private to the room.
 */
#ifndef KYMO_PROBE_SHARED_H
#define KYMO_PROBE_SHARED_H

#include "base/error.h"
#include "probe/remote_memory.h"
#include "probe/session.h"
#include "proc/proc.h"
#include "wire/shared.h"

#define KYMO_JOURNAL_CAPACITY KYMO_WIRE_MAX_SITES
#define KYMO_WINDOW_SIZE ((uint64_t)256 << 20)

/* What pads write: one memfd, as a process has it. */
struct kymo_data {
	int fd;
	struct kymo_wire_data *head; /* the controller's mapping of it; the target writes it, too */
	uint64_t inode, size;
	bool is_childs;   /* a forked child's: less of it is used */
	uint64_t most;    /* bytes of a sub-buffer, of a child's; 0: no such bound */
	bool is_locked;   /* no sequences are used: the CPUs' rings with locks have the work */
	bool are_to_grow; /* of the working rings one is used: so will be the others */
	uint32_t *have;   /* per ring: sub-buffers whose memory is there */
};

struct kymo_shared {
	int fd;
	struct kymo_wire_header *header; /* the controller's mapping of all of the code memory; only it writes that */
	uint64_t view_size;              /* of that mapping */
	uint64_t n_sites;                /* of the journal */
	uint32_t n_regions;
	uint64_t n_runs;
	uint64_t generation;                  /* of the journal */
	uint64_t inode;                       /* of the memfd */
	uint64_t live[KYMO_WIRE_MAX_REGIONS]; /* the live page of each */
	uint64_t size;                        /* of header, runs and journal */
	uint64_t address;                     /* of the header in the target; words are behind the journal */
	uint64_t data_address, data_size;     /* in the target */
	struct kymo_data data;
	uint64_t window;   /* all pads, in the target */
	bool is_sequenced; /* the first n_cpus rings are driven by restartable sequences; set before
			      kymo_shared_create() */
	uint32_t n_cpus, n_sequenced, n_rings;
	uint64_t pads_used; /* bytes of the window */
};

/* Make both memfds in the process, of which all threads are stopped, and map them; no pads and rings are allocated yet.
 */
struct kymo_error *kymo_shared_create(struct kymo_process *process, const struct kymo_probes_options *options,
				      struct kymo_shared *ret);
void kymo_shared_deinit(struct kymo_shared *shared);

/* Store into the code memory, where there may be no page yet: an error (errno) instead of a fault. The second form
 * counts from where pads begin. */
int kymo_shared_store(struct kymo_shared *shared, uint64_t offset, const void *bytes, size_t size);
int kymo_shared_store_pads(struct kymo_shared *shared, uint64_t at, const void *bytes, size_t size);

/* In the target: the words, and that of a journal entry. */
uint64_t kymo_shared_words_address(const struct kymo_shared *shared);
uint64_t kymo_shared_word(const struct kymo_shared *shared, uint64_t entry);

/* ---- data.c ---- */

/* Bytes that all rings and the head take. */
uint64_t kymo_data_size(const struct kymo_shared *shared, const struct kymo_probes_options *options);

/* Geometry of ring `i`: CPUs' own rings first, then the spare ones. */
struct kymo_shared_ring kymo_data_ring(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				       const struct kymo_data *data, size_t i);

/* The controller's view of a memfd that was taken over, with its head. */
struct kymo_error *kymo_data_open(const struct kymo_shared *shared, struct kymo_process *process,
				  struct kymo_data *data);

/* Map descriptor `remote` of the stopped process there, thread borrowed, so that forked children do not get it.
 * `made_ret` has a size once it is mapped, also on an error. */
struct kymo_error *kymo_data_map(const struct kymo_shared *shared, struct kymo_process *process, int64_t remote,
				 struct kymo_remote_mapping *made_ret);

/* Lay the rings out. None has memory yet. */
struct kymo_error *kymo_data_format(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				    struct kymo_data *data);

/*
 * Allocate what is used first of their memory, so that no producer can fault on it: until there is more, `consumed`
 * tells producers that the others are full. Producers that overwrite have all of it at once. The process may run.
 * `is_locked`: no sequences are used; may be told again, when that is known.
 */
struct kymo_error *kymo_data_prepare(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				     struct kymo_data *data, bool is_locked);

/* kymo_probes_grow() and kymo_probes_is_ring_whole() for these rings. */
bool kymo_data_grow(const struct kymo_shared *shared, const struct kymo_probes_options *options,
		    struct kymo_data *data);
bool kymo_data_is_whole(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i);

void kymo_data_deinit(struct kymo_data *data);

/* Such memory for a forked child of `makers`' (NULL: of the first process), which is stopped; it records into it when
 * its live pages say so. */
struct kymo_wire_data *probes_adopted_head(const struct kymo_adopted *adopted);
struct kymo_error *probes_make_data(const struct kymo_probes *probes, struct kymo_process *child,
				    const struct kymo_adopted *makers, struct kymo_adopted **ret);

/* Of kymo_adopted_faults(), to be changed. */
unsigned int *probes_adopted_faults(struct kymo_adopted *adopted);

/* Where the table of runs and the journal begin in the shared memory. */
uint64_t kymo_shared_runs_offset(void);
uint64_t kymo_shared_journal_offset(void);

/* Append entries to the journal, which the process's words belong to; they count when this returns. FAILED when it is
 * full. */
struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, struct kymo_process *process,
				       const struct kymo_wire_site *sites, size_t n);

struct probe_region;
struct probe_layout;

/* Map a region (its addresses are free, checked by the caller) in the stopped process, thread borrowed: pads from the
 * window, and the live page. */
struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process,
					  const struct probe_region *region);

/*
 * Map trampolines, in the stopped process, thread borrowed: its other threads may run. `taken_ret`: something has been
 * mapped there meanwhile; what was mapped here before stays until the recording is taken out.
 */
struct kymo_error *kymo_shared_map_runs(struct kymo_shared *shared, struct kymo_process *process,
					const struct probe_layout *layout, bool *taken_ret);

/* All entries are in the text. */
void kymo_shared_installed(struct kymo_shared *shared);

/* The text is about to change, or has changed, with the process stopped: entries whose library is back are in it again,
 * and recordings that took them for dormant plan anew. */
void kymo_shared_touch(struct kymo_shared *shared);

/* Forget journal entries behind the first `n`: nothing of them is in the text. */
void kymo_shared_rewind(struct kymo_shared *shared, uint64_t n);

#endif
