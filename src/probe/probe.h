/*
 * Probes in a process: putting them in, taking them out, asking what is there.
 */
#ifndef KYMO_PROBE_PROBE_H
#define KYMO_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/memory/recorders.h"
#include "probe/spec/spec.h"

/* ---- kymo detach ----------------------------------------------------------------------------- */

struct kymo_detach_result {
	size_t sites_restored; /* text changes taken back */
	size_t sites_clean;    /* in the journal, but the text was the original already */
	size_t mappings_removed;
	size_t pages_verified; /* text pages that were compared with the file afterward */
	bool pads_left;        /* a thread is still in a pad, or may return to one: pads stay mapped */
	bool text_left;        /* … and changes may be in the text: they cannot be taken back yet */
	char *note;            /* a sentence for the user, or NULL; caller frees */
	pid_t *recorders; /* recorders that have ended their recordings and removed their own probes; caller frees */
	size_t n_recorders;
};

/*
 * Take everything of kymo's out of process `pid`, by the journal in the process alone, whatever recorder put it there
 * and however that ended. Live recorders are asked to stop first (SIGTERM) and waited for, 5 s at the most. GONE,
 * PERMISSION, BUSY (another tracer, which is named; or a recorder in a PID namespace that is not visible here),
 * NOT_FOUND: it has no probes of kymo's; UNSAFE: a site has bytes that are neither kymo's nor the file's (they stay).
 */
struct kymo_error *kymo_detach(pid_t pid, struct kymo_detach_result *ret);

/* ---- kymo status ----------------------------------------------------------------------------- */

struct kymo_status_site {
	uint64_t address;
	uint32_t event_id;
	char name[64];
	char tactic[20];
};

struct kymo_status {
	pid_t pid;
	char comm[32];
	pid_t recorder; /* 0 when it is dead; KYMO_RECORDER_ELSEWHERE */
	uint64_t started_wall_ns;
	char directory[256]; /* of the recording */
	uint64_t recorded_bytes, lost_events;
	struct kymo_status_site *sites;
	size_t n_sites;
	size_t n_catches;    /* jumps to function clones; 0: it has no clones */
	uint64_t ring_bytes; /* memory of the rings of its threads' branches */
};

/* The recordings of process `pid`, in a fresh array. NOT_FOUND: it has no probes of kymo's. */
struct kymo_error *kymo_status(pid_t pid, struct kymo_status **ret, size_t *n_ret);
void kymo_status_deinit(struct kymo_status *status);

/* All processes with probes of kymo's that are visible to this user, in a fresh array. */
struct kymo_error *kymo_status_all(pid_t **ret, size_t *n_ret);

#endif
