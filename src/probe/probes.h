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

/* The file that a spec's name leads to from here, through PATH and links; inode 0: none. */
struct probe_file {
	uint32_t major, minor;
	uint64_t inode;
};

/* A place in the text of the process. Sites and events refer to others by index: the arrays grow. */
struct probe_site {
	uint64_t address;		/* of the plan's first byte, runtime */
	size_t module;
	struct kymo_plan plan;
	KYMO_VEC(size_t) events;
	bool exact;			/* some spec names it without a glob: leaving it out is an error */
	bool installed;
	bool is_guard;			/* one of kymo's own, without events (arch/pad.h) */
	uint64_t pad;
	uint32_t pad_size, entry;	/* threads enter at pad + entry */
	uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1];
};

struct kymo_probes {
	struct kymo_process *process;
	const struct kymo_spec *specs;
	size_t n_specs;
	bool *met;			/* per spec: some file and function was found */
	struct probe_file *files;	/* per spec */
	struct kymo_probes_options options;
	char *directory;		/* what options.directory points to */
	KYMO_VEC(struct probe_module) modules;
	KYMO_VEC(struct probe_site) sites;	/* sorted by address after resolve; installed and pending ones */
	KYMO_VEC(struct kymo_probe_event) events;
	bool has_shared;
	struct kymo_shared shared;
	bool is_live;			/* threads have their thread pointers */
	bool is_starting;		/* a launched program that has not reached its entry */
	bool has_guards;
	int64_t tid_offset, rseq_offset;	/* 0: not known */
	uint64_t stack_low, stack_high;
};

/* ---- resolve.c --------------------------------------------------------------------------------------------------- */

/* The module with index `i`, planned code made if need be. */
struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret);

/* Free modules, sites and events. */
void probes_resolve_deinit(struct kymo_probes *probes);

/* "libc:malloc", for messages. */
const char *probes_site_name(const struct kymo_probes *probes, const struct probe_site *site);

/* ---- files.c ---------------------------------------------------------------------------------------------------- */

/* Look up the files of all specs. */
struct kymo_error *probes_files_init(struct kymo_probes *probes);

/* Whether `map` is of the file that spec `spec_at` leads to. Names that fit (kymo_name_matches_file()) mean it too. */
bool probes_is_file(const struct kymo_probes *probes, size_t spec_at, const struct kymo_map *map);

/* ---- threads.c ---------------------------------------------------------------------------------------------------- */

/* Whether the process looks as if its threads could use restartable sequences: glibc says where, and the user did not forbid it. */
bool probes_may_use_sequences(struct kymo_probes *probes);

/* With the process stopped and guards in: let pads use sequences, if every thread turns out to be registered as glibc does it, or not yet registered. */
struct kymo_error *probes_use_sequences(struct kymo_probes *probes);

/* Read what the stopped moments will ask for, while the process runs. */
void probes_read_ahead(struct kymo_probes *probes);

/* Write state and offsets to all live pages. */
struct kymo_error *probes_write_state(struct kymo_probes *probes, uint8_t state);

/* Add guards as pending sites, when glibc is mapped and has none yet. Leaves them out where one would touch a probe. */
struct kymo_error *probes_add_guards(struct kymo_probes *probes);

/* Add a site in the order of addresses; its events are taken over. */
struct kymo_error *probes_insert_site(struct kymo_probes *probes, const struct probe_site *site, struct probe_site **ret);

/* The site whose window touches [address, address + window), or NULL. */
const struct probe_site *probes_overlapped(const struct kymo_probes *probes, uint64_t address, unsigned int window);

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
