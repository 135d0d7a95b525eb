/*
 * The probes of one recording in one process: from the user's words to patched text, and back.
 *
 *	create		nothing happens to the process
 *	resolve		look at what is mapped, find sites, plan them; the process runs
 *	install		memory, pads, journal, text; the process is stopped for moments
 *	remove		text, pads, memory
 *
 * resolve and install are repeated while a launched program maps its libraries. The order of steps, and what holds when kymo or the
 * process dies between any two of them, is in docs/design/probing.md.
 */
#ifndef KYMO_PROBE_SESSION_H
#define KYMO_PROBE_SESSION_H

#include "base/error.h"
#include "probe/spec.h"
#include "proc/proc.h"
#include "wire/shared.h"

struct kymo_probes;

struct kymo_probes_options {
	const char *directory;		/* for kymo status */
	uint64_t buffer_size;		/* bytes a CPU */
	bool overwrite;
	bool no_rseq;			/* never use restartable sequences */
	/* A sentence that the user should see although all goes on. */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

/* One event: a spec at a site. Strings belong to the probes. */
struct kymo_probe_event {
	uint32_t id;
	char *name;			/* "libc:malloc" */
	const struct kymo_spec *spec;
	struct kymo_fetch args[KYMO_EVENT_MAX_ARGS];
	char *path, *symbol, *build_id;	/* the file, "malloc+0x4", hex */
	uint64_t offset;		/* in the file */
	uint64_t address;		/* runtime */
};

/* What the recorder needs of the shared memory. */
struct kymo_shared_ring {
	struct kymo_wire_ring *shared;
	const uint8_t *data;
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	uint32_t cpu;
	bool is_sequenced;		/* kymo_pad_close_ring() must be called before a packet can be closed from outside */
};

/* `process` and `specs` must outlive the result. */
struct kymo_error *kymo_probes_create(struct kymo_process *process, const struct kymo_spec *specs, size_t n_specs,
				      const struct kymo_probes_options *options, struct kymo_probes **ret);

/* Free what this process holds; the target is not touched. NULL is allowed. */
void kymo_probes_destroy(struct kymo_probes *probes);

/*
 * Look at files mapped since the last time. UNSAFE: a probe named exactly has no safe place; NOT_FOUND: a file that a spec names is mapped, but has no
 * such function (the nearest names are listed). For globs such functions are left out, and a warning says how many and why.
 */
struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes);

/* NOT_FOUND for the first spec that has met no file yet, with what the process has mapped. */
struct kymo_error *kymo_probes_check_all_found(struct kymo_probes *probes);

/* How many sites are planned and not installed. */
size_t kymo_probes_pending(const struct kymo_probes *probes);

/*
 * Put the pending sites in. Leaves the process running if it was, stopped if it was. `stopped_ns_ret` is increased by the time for which it was
 * stopped here. On an error none of the pending sites is in; those put in before stay.
 */
struct kymo_error *kymo_probes_install(struct kymo_probes *probes, uint64_t *stopped_ns_ret);

/* Threads have their thread pointers: tids can be read. The process is stopped, or has been running for long. */
struct kymo_error *kymo_probes_set_live(struct kymo_probes *probes);

/* A launched program is about to run on its own: the process is stopped, and all its threads can be looked at. */
struct kymo_error *kymo_probes_started(struct kymo_probes *probes);

/* The program is being launched: kymo_probes_started() will come. */
void kymo_probes_starting(struct kymo_probes *probes);

const struct kymo_probe_event *kymo_probes_events(const struct kymo_probes *probes, size_t *n);
size_t kymo_probes_n_sites(const struct kymo_probes *probes);

/* Rings exist after the first install. */
size_t kymo_probes_n_rings(const struct kymo_probes *probes);
struct kymo_shared_ring kymo_probes_ring(const struct kymo_probes *probes, size_t i);

/* For kymo status. */
void kymo_probes_publish(struct kymo_probes *probes, uint64_t recorded_bytes, uint64_t lost);

/* Whether the process still has the memory that the probes live in: false after an exec. */
bool kymo_probes_are_mapped(struct kymo_probes *probes);

#endif
