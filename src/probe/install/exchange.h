/* A process that comes to handle faults: sites that may fault are planned anew. */
#ifndef KYMO_PROBE_INSTALL_EXCHANGE_H
#define KYMO_PROBE_INSTALL_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_adopted;
struct kymo_probes;
struct kymo_process;

/* Threads are about to set handlers of faults, and wait for kymo_probes_heed_handlers(): of the process, or of an
 * adopted child. */
bool kymo_probes_are_handlers_set(const struct kymo_probes *probes, const struct kymo_adopted *adopted);

/*
 * See whether the process has come to handle faults: then the sites that displace what may fault are planned anew, and
 * taken out where there is no other plan, with a warning; of the `n` children that were adopted they are taken out.
 * They are taken out of a child alone that handles faults which the process does not handle: it may have fewer rights,
 * and must not have a say in what is recorded of the others. The processes run; they are stopped for that. An error
 * leaves those sites out.
 */
struct kymo_error *kymo_probes_heed_handlers(struct kymo_probes *probes, struct kymo_process *const *children,
					     struct kymo_adopted *const *adopted, size_t n, uint64_t *stopped_ns_ret);

/* Nothing was exchanged, and no thread got an answer, as clones are beside the probes (install/clones.h): these go
 * first. */
bool kymo_probes_wait_for_clones(const struct kymo_probes *probes);

#endif
