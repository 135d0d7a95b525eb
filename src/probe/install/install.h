/*
 * The probes of one recording in one process: from the user's words to patched text, and back.
 *
 *	create		nothing happens to the process
 *	resolve		look at what is mapped, find sites, plan them; the process runs (mapped.h)
 *	install		memory, pads, journal, text; the process is stopped for moments
 *	remove		text, pads, memory (remove.h)
 *
 * resolve and install are repeated while a launched program maps its libraries. The order of steps, and what holds when
 * kymo or the process dies between any two of them, is in docs/internals/probing.md.
 */
#ifndef KYMO_PROBE_INSTALL_INSTALL_H
#define KYMO_PROBE_INSTALL_INSTALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_probes_options;
struct kymo_process;
struct kymo_spec;

/* `process` and `specs` must outlive the result. */
struct kymo_error *kymo_probes_create(struct kymo_process *process, const struct kymo_spec *specs, size_t n_specs,
				      const struct kymo_probes_options *options, struct kymo_probes **ret);

/* Free what this process holds; the target is not touched. NULL is allowed. */
void kymo_probes_destroy(struct kymo_probes *probes);

/*
 * Put the pending sites in. A running process runs on, and a stopped one stays stopped. `stopped_ns_ret` is increased
 * by the time for which it was stopped here. On an error none of the pending sites is in; those put in before stay.
 * While a program starts and only the watch for libraries is pending, nothing is done: kymo_probes_install_rest() puts
 * it in.
 */
struct kymo_error *kymo_probes_install(struct kymo_probes *probes, uint64_t *stopped_ns_ret);

/* The same, and all that was put off: the program has started, and kymo_probes_started() is next. */
struct kymo_error *kymo_probes_install_rest(struct kymo_probes *probes, uint64_t *stopped_ns_ret);

/* Stop the process, which runs. While it is stopped no other recorder changes its text. kymo_process_resume() ends
 * that. */
struct kymo_error *kymo_probes_freeze(struct kymo_probes *probes);

#endif
