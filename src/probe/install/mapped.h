/* What the process has mapped, and what specs mean there. */
#ifndef KYMO_PROBE_INSTALL_MAPPED_H
#define KYMO_PROBE_INSTALL_MAPPED_H

#include <stddef.h>

#include "base/error.h"

struct kymo_probes;

/*
 * Look at files mapped since the last time. UNSAFE: a probe named exactly has no safe location; NOT_FOUND: a file that
 * a spec names is mapped, but has no such function (the nearest names are listed). For globs such functions are left
 * out, and a warning says how many and why.
 */
struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes);

/* NOT_FOUND for the first spec that has met no file yet, with what the process has mapped. */
struct kymo_error *kymo_probes_check_all_found(struct kymo_probes *probes);

/* The same for one spec. */
struct kymo_error *kymo_probes_check_found(struct kymo_probes *probes, size_t spec);

#endif
