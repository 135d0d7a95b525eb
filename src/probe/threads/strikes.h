/* Pads at the system calls that may take memory away from readers (docs/design/fast-reads.md). Private to the room. */
#ifndef KYMO_PROBE_THREADS_STRIKES_H
#define KYMO_PROBE_THREADS_STRIKES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_probes;
struct kymo_syscall_site;

/* Add those of all modules as pending sites, where the recording reads by a table. */
struct kymo_error *probes_add_strikes(struct kymo_probes *probes);

/* Those that are not in are not pending any more; probes_add_strikes() adds them again. */
void probes_drop_strikes(struct kymo_probes *probes);

/* Whether what is made at the site may take memory away. */
bool probes_may_strike(const struct kymo_syscall_site *at);

/* All system calls of a module, which is no JIT code. */
struct kymo_error *probes_calls_of(struct kymo_probes *probes, size_t module_at,
				   const struct kymo_syscall_site **sites_ret, size_t *n_ret);

#endif
