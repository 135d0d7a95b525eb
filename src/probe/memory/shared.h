/*
 * The shared memory: making it in a target, and the controller's own view of it. Private to the room.
 */
#ifndef KYMO_PROBE_MEMORY_SHARED_H
#define KYMO_PROBE_MEMORY_SHARED_H

#include "base/error.h"
#include "probe/memory/arena.h"
#include "probe/memory/data.h"
#include "wire/shared.h"

struct probe_region;

#define KYMO_JOURNAL_CAPACITY KYMO_WIRE_MAX_SITES
#define KYMO_WINDOW_SIZE ((uint64_t)256 << 20)

struct kymo_shared {
	int fd;
	struct kymo_wire_header *header; /* the controller's mapping of all of the code memory; only it writes that */
	uint64_t view_size;              /* of that mapping */
	uint64_t n_sites;                /* of the journal */
	uint32_t n_regions;
	uint64_t n_trampolines;
	uint64_t generation;                  /* of the journal */
	uint64_t inode;                       /* of the memfd */
	uint64_t live[KYMO_WIRE_MAX_REGIONS]; /* the live page of each */
	uint64_t size;                        /* of header, trampolines and journal */
	uint64_t address;                     /* of the header in the target; words are behind the journal */
	uint64_t data_address, data_size;     /* in the target */
	uint64_t readable_at;                 /* of struct kymo_wire_readable in the data; 0: there is none */
	struct kymo_data data;
	struct kymo_arena arena; /* of function clones */
	uint64_t window;         /* all pads, in the target */
	bool is_sequenced;       /* the first n_cpus rings are driven by restartable sequences; set before
				    kymo_shared_create() */
	uint32_t n_cpus, n_sequenced, n_rings;
	uint64_t pads_used; /* bytes of the window, the first page of which is for the code of batches */
	bool has_batches;   /* that code is there */
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

/* Where the stopped process has the code for batches (proc/batch.h); 0: it may make none. */
uint64_t kymo_shared_batches(struct kymo_shared *shared, struct kymo_process *process);

/* In the target: the words, and that of a journal entry. */
uint64_t kymo_shared_words_address(const struct kymo_shared *shared);
uint64_t kymo_shared_word(const struct kymo_shared *shared, uint64_t entry);

/* Where the table of trampolines and the journal begin in the shared memory. */
uint64_t kymo_shared_trampolines_offset(void);
uint64_t kymo_shared_journal_offset(void);

/* Append entries to the journal, which the process's words belong to; they count when this returns. FAILED when it is
 * full. */
struct kymo_error *kymo_shared_journal(struct kymo_shared *shared, struct kymo_process *process,
				       const struct kymo_wire_site *sites, size_t n);

/* Map a region (its addresses are free, checked by the caller) in the stopped process, within a remote call: pads from
 * the window, and the live page. */
struct kymo_error *kymo_shared_map_region(struct kymo_shared *shared, struct kymo_process *process,
					  const struct probe_region *region);

/* Nothing is written for entry `i` after all, and what is there is no concern of this recording's. An errno. */
int kymo_shared_strike(struct kymo_shared *shared, uint32_t i);

/* All entries are in the text. */
void kymo_shared_installed(struct kymo_shared *shared);

/* The text is about to change, or has changed, with the process stopped: entries whose library is back are in it again,
 * and recordings that took them for dormant plan anew. */
void kymo_shared_touch(struct kymo_shared *shared);

/* Forget journal entries after the first `n`: nothing of them is in the text. */
void kymo_shared_rewind(struct kymo_shared *shared, uint64_t n);

#endif
