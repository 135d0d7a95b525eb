/* Probes that write registers: where they may not be. Private to the room. */
#ifndef KYMO_PROBE_PLAN_WRITES_H
#define KYMO_PROBE_PLAN_WRITES_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_probes;
struct probe_site;

/* Refuse those requests of the site that write and may not; `is_joined`: another recording has a probe there. */
struct kymo_error *probes_refuse_writes(struct kymo_probes *probes, struct probe_site *site, bool is_joined);

#endif
