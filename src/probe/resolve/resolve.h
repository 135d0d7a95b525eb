/* What specs mean in modules. No process is touched. Private to the room. */
#ifndef KYMO_PROBE_RESOLVE_RESOLVE_H
#define KYMO_PROBE_RESOLVE_RESOLVE_H

#include <stddef.h>

#include "base/error.h"

struct kymo_probes;
struct probe_site;

/* What all specs mean in a module. Errors are those of kymo_probes_resolve(). */
struct kymo_error *probes_resolve_module(struct kymo_probes *probes, size_t module_at);

/* The site of a spec that names an address: the module is the code around it. */
struct kymo_error *probes_resolve_address(struct kymo_probes *probes, size_t spec_at, size_t module_at);

/* Free modules and sites. */
void probes_resolve_deinit(struct kymo_probes *probes);

/* The site is planned: its requests become events. */
struct kymo_error *probes_make_events(struct kymo_probes *probes, struct probe_site *site);

#endif
