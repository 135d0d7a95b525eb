/* What the files behind session.h share. Private to the room. */
#ifndef KYMO_PROBE_PROBES_H
#define KYMO_PROBE_PROBES_H

#include "arch/arch.h"
#include "arch/pad.h"
#include "base/vec.h"
#include "probe/code.h"
#include "probe/session.h"
#include "probe/shared.h"
#include "sym/sym.h"

/* A file that the process has mapped executable and some spec names. */
struct probe_module {
	uint32_t major, minor;
	uint64_t inode, bias;
	uint64_t low, high;		/* where it is mapped, from end to end */
	char *path;
	struct kymo_module *module;
	struct kymo_code *code;		/* made when the first site is planned */
};

/* A place in the text of the process. Sites and events refer to others by index: the arrays grow. */
struct probe_site {
	uint64_t address;		/* of the plan's first byte, runtime */
	size_t module;
	struct kymo_plan plan;
	KYMO_VEC(size_t) events;
	bool exact;			/* some spec names it without a glob: leaving it out is an error */
	bool installed;
	uint64_t pad;
	uint32_t pad_size;
	uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1];
};

struct kymo_probes {
	struct kymo_process *process;
	const struct kymo_spec *specs;
	size_t n_specs;
	bool *met;			/* per spec: some file and function was found */
	struct kymo_probes_options options;
	char *directory;		/* what options.directory points to */
	KYMO_VEC(struct probe_module) modules;
	KYMO_VEC(struct probe_site) sites;	/* sorted by address after resolve; installed and pending ones */
	KYMO_VEC(struct kymo_probe_event) events;
	bool has_shared;
	struct kymo_shared shared;
	bool is_live;
	uint64_t stack_low, stack_high;
};

/* ---- resolve.c --------------------------------------------------------------------------------------------------- */

/* The module with index `i`, planned code made if need be. */
struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret);

/* Free modules, sites and events. */
void probes_resolve_deinit(struct kymo_probes *probes);

/* ---- place.c ----------------------------------------------------------------------------------------------------- */

/* A stretch of pads for sites that are near each other, before it is in the target. */
struct probe_region {
	uint64_t address, size;		/* in the target; with the live page and the last one */
	uint64_t at;			/* in the window */
	uint8_t *bytes;			/* guest code and pads */
	size_t n_bytes;
};

struct probe_regions {
	struct probe_region *items;
	size_t n, cap;
};

/*
 * Choose addresses for the pads of all pending sites and emit them; the process may run. Fills pad, pad_size and insn_at of each. A site out of reach from
 * every hole is an error when it is exact, and left out with a warning when it is not.
 */
struct kymo_error *probes_place(struct kymo_probes *probes, struct probe_regions *ret);
void probes_regions_deinit(struct probe_regions *regions);

/* ---- apply.c ----------------------------------------------------------------------------------------------------- */

/*
 * With the process stopped and pads and journal in place: write the text of all pending sites. -EAGAIN as `again_ret` when a thread stands
 * where it cannot be moved: nothing was changed then.
 */
struct kymo_error *probes_apply(struct kymo_probes *probes, bool *again_ret);

/*
 * Words on the stacks of the stopped threads that look like the program counter of a saved signal frame (a code selector two words behind) and for which
 * `is_hot` says yes: the first is returned, with its thread, or 0.
 */
uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps,
			      bool (*is_hot)(uint64_t pc, void *data), void *data, pid_t *tid_ret);

void probes_warn(const struct kymo_probes *probes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
