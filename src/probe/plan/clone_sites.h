/* Sites whose plans are given: the catches of function clones. Private to the room. */
#ifndef KYMO_PROBE_PLAN_CLONE_SITES_H
#define KYMO_PROBE_PLAN_CLONE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_clones;
struct kymo_probes;
struct planning;

/* Of a thread's word, and of its id, from its FS base: docs/design/clones.md. Of glibc's threads on x86-64. */
#define PROBE_CLONES_WORD 56
#define PROBE_CLONES_TID 720

/* The clones of one module. */
struct probe_clones {
	size_t module;
	struct kymo_clones *clones;
	uint32_t first_site;
	size_t n_hops;       /* pads that go on in one of them, at the most */
	uint64_t hops;       /* where they go on */
	uint64_t code, size; /* where their code is in the process, once it was emitted */
	bool *stays;         /* by clone: its function stays as it is, and no thread comes to the clone; or NULL */
};

void probes_clones_deinit(struct kymo_probes *probes);

/* The recording of a command, or of a process that runs, is over before it has begun. */
struct kymo_error *probes_clones_given_up(bool is_running);

/* Emit all of them, each module's into a region of its own, with the map behind it; their catches become sites. Those
 * have plans, and no requests. What does not fit is left out by modules. FAILED: it is given up. */
struct kymo_error *probes_plan_clones(struct planning *planning);

#endif
