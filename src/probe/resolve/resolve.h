/* What specs mean in the files that the process has mapped. */
#ifndef KYMO_PROBE_RESOLVE_RESOLVE_H
#define KYMO_PROBE_RESOLVE_RESOLVE_H

#include "base/error.h"

struct kymo_probes;
struct probe_site;

/*
 * Look at files mapped since the last time. UNSAFE: a probe named exactly has no safe place; NOT_FOUND: a file that a
 * spec names is mapped, but has no such function (the nearest names are listed). For globs such functions are left out,
 * and a warning says how many and why.
 */
struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes);

/* Free modules and sites. */
void probes_resolve_deinit(struct kymo_probes *probes);

/* The site is planned: its requests become events. */
struct kymo_error *probes_make_events(struct kymo_probes *probes, struct probe_site *site);

#endif
