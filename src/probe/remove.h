/*
 * Taking probes out, from the journal in the process alone. The way back is the same for a recorder that ends, for `kymo detach`, and for
 * the next recorder that finds what a dead one left.
 */
#ifndef KYMO_PROBE_REMOVE_H
#define KYMO_PROBE_REMOVE_H

#include "base/error.h"
#include "probe/probe.h"
#include "proc/proc.h"
#include "wire/shared.h"

/* What is in a process: copies, checked. */
struct kymo_remains {
	pid_t pid;
	bool found;			/* some mapping or descriptor of kymo's */
	bool has_header;		/* and its header makes sense */
	bool is_recorder;		/* the process records another one: what it has is its own, and not found */
	uint64_t inode;			/* of the memfd that the header is in */
	struct kymo_wire_header header;
	struct kymo_wire_site *sites;
	size_t n_sites;
};

/* Look for what kymo left in `process`, which may run. BAD_DATA: a header of another version, or damaged. */
struct kymo_error *kymo_remains_read(struct kymo_process *process, struct kymo_remains *ret);
void kymo_remains_deinit(struct kymo_remains *remains);

/* Whether a recorder of this very process is alive. */
bool kymo_remains_have_recorder(const struct kymo_remains *remains);

/*
 * Restore text, wait until no thread is in a pad or returns to one, unmap. The process runs afterwards as it did before. Sites that hold foreign bytes are
 * left, and so are then the pads; `ret` tells all.
 */
struct kymo_error *kymo_remove(struct kymo_process *process, struct kymo_detach_result *ret);

#endif
