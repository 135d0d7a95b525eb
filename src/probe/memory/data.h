/* The memory that pads write: the rings, and the head with counters. A forked child has its own. */
#ifndef KYMO_PROBE_MEMORY_DATA_H
#define KYMO_PROBE_MEMORY_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_ahead;
struct kymo_probes;
struct kymo_spec;
struct kymo_probes_options;
struct kymo_process;
struct kymo_remote_mapping;
struct kymo_shared;
struct kymo_wire_data;
struct kymo_wire_ring;

/* What the recorder needs of the shared memory. */
struct kymo_shared_ring {
	struct kymo_wire_ring *shared;
	const uint8_t *data;
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	uint32_t cpu;
	bool is_sequenced; /* kymo_pad_close_ring() must be called before a packet can be closed from outside */
};

/* One memfd that pads write, as a process has it. */
struct kymo_data {
	int fd;
	struct kymo_wire_data *head; /* the controller's mapping of it; the target writes it, too */
	uint64_t inode, size;
	bool is_childs;           /* a forked child's: less of it is used */
	uint64_t least;           /* bytes of a sub-buffer that holds the largest record, of a child's */
	uint64_t most;            /* bytes of a sub-buffer, of a child's; 0: no such bound */
	bool is_locked;           /* no sequences are used: threads use the CPUs' rings with locks */
	bool are_to_grow;         /* one of the working rings is used, so the others will be */
	uint32_t *have;           /* per ring: sub-buffers that have memory */
	struct kymo_ahead *ahead; /* the thread that allocates, or NULL */
	uint32_t *coming;         /* per ring: sub-buffers that it allocates */
	bool are_whole;           /* all rings have all of their memory */
	int growth_err;           /* of the last time that a ring was to get more: 0, or an errno value */
};

/* The rings of a forked child: as many as its parent's, at the same addresses, and smaller. */
struct kymo_adopted;

/* Free what this process holds. NULL is allowed. */
void kymo_adopted_destroy(struct kymo_adopted *adopted);

/* What kymo_probes_ring(), kymo_probes_are_muted() and kymo_probes_lost_in_vforks() are for the process with the
 * probes. */
struct kymo_shared_ring kymo_adopted_ring(const struct kymo_adopted *adopted, const struct kymo_probes *probes,
					  size_t i);

/*
 * Rings begin with a part of their memory; this adds more to one of them. That is the ring in use that has the least
 * left; or, where none is in use, a ring of another CPU. `adopted` is the child whose rings they are, or NULL.
 * `is_short`: only to a ring that is in use and has used half of what it has. true: it has more now, perhaps not all;
 * call again at once.
 */
bool kymo_probes_grow(struct kymo_probes *probes, struct kymo_adopted *adopted, bool is_short);

/* Why the last kymo_probes_grow() could not add any: an errno value. Or 0. */
int kymo_probes_growth_error(const struct kymo_probes *probes, const struct kymo_adopted *adopted);

/* Whether ring `i` has all of its memory: packets may be released from then on. */
bool kymo_probes_is_ring_whole(const struct kymo_probes *probes, const struct kymo_adopted *adopted, size_t i);

/* Whether ring `i` has memory for the packet after the open one, which may be closed then. */
bool kymo_probes_has_next(const struct kymo_probes *probes, const struct kymo_adopted *adopted, size_t i);

bool kymo_adopted_is_muted(const struct kymo_adopted *adopted);

/* KYMO_FAULT_…: faults that the child handles and its parent does not. Probes that may cause them are out of its text.
 */
unsigned int kymo_adopted_faults(const struct kymo_adopted *adopted);
uint64_t kymo_adopted_lost_in_vforks(const struct kymo_adopted *adopted);

/* Bytes of the smallest buffer whose sub-buffers hold the largest record of these specs, with its stack. */
uint64_t kymo_data_buffer_least(const struct kymo_spec *specs, size_t n);

/* Bytes that all rings and the head take. */
uint64_t kymo_data_size(const struct kymo_shared *shared, const struct kymo_probes_options *options);

/* Geometry of ring `i`: CPUs' own rings first, then the spare ones. */
struct kymo_shared_ring kymo_data_ring(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				       const struct kymo_data *data, size_t i);

/* The controller's view of a memfd that was taken over, with its head. */
struct kymo_error *kymo_data_open(const struct kymo_shared *shared, struct kymo_process *process,
				  struct kymo_data *data);

/* Map descriptor `remote` of the stopped process there, within a remote call, so that forked children do not get it.
 * `made_ret` has a size once it is mapped, also on an error; `code` is as for kymo_remote_calls(). */
struct kymo_error *kymo_data_map(const struct kymo_shared *shared, struct kymo_process *process, uint64_t code,
				 int64_t remote, struct kymo_remote_mapping *made_ret);

/* Lay the rings out. They have no memory yet. */
struct kymo_error *kymo_data_format(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				    struct kymo_data *data);

/* Let a thread begin with what kymo_data_prepare() does. Where there can't be one, that allocates all of it. */
void kymo_data_prepare_ahead(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			     struct kymo_data *data, bool is_locked);

/* Wait for that thread. What it could not allocate is as if it had not been begun. */
void kymo_data_settle(const struct kymo_shared *shared, const struct kymo_probes_options *options,
		      struct kymo_data *data);

/*
 * Allocate the first part of their memory, so that no producer can fault on it. Until there is more, `consumed` tells
 * producers that the other sub-buffers are full. Producers that overwrite get all memory at once. The process may run.
 * `is_locked`: no sequences are used; may be called again when that is known.
 */
struct kymo_error *kymo_data_prepare(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				     struct kymo_data *data, bool is_locked);

/* kymo_probes_grow(), kymo_probes_is_ring_whole() and kymo_probes_has_next() for these rings. */
bool kymo_data_grow(const struct kymo_shared *shared, const struct kymo_probes_options *options, struct kymo_data *data,
		    bool is_short);
bool kymo_data_is_whole(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i);
bool kymo_data_has_next(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i);

/* The memory itself is freed later: by kymo_spent_free(), or when there is too much of it. */
void kymo_data_deinit(struct kymo_data *data);

/* Such memory for a forked child of `makers`' (NULL: of the first process), which is stopped; it records into it when
 * its live pages say so. */
struct kymo_wire_data *probes_adopted_head(const struct kymo_adopted *adopted);
struct kymo_error *probes_make_data(const struct kymo_probes *probes, struct kymo_process *child,
				    const struct kymo_adopted *makers, struct kymo_adopted **ret);

/* Of kymo_adopted_faults(), to be changed. */
unsigned int *probes_adopted_faults(struct kymo_adopted *adopted);

#endif
