/* Markers that stay off. Private to the room. */
#ifndef KYMO_PROBE_PLAN_CORRUPT_H
#define KYMO_PROBE_PLAN_CORRUPT_H

#include "base/error.h"

struct kymo_probes;
struct probe_snapshot;

/* Before planning: leave out those that can't be turned on, as the last try has found. */
struct kymo_error *probes_refuse_switches(struct kymo_probes *probes, const struct probe_snapshot *snapshot);

/* After it: those behind which no location is left. Nothing is said of them: it was said of the locations. */
struct kymo_error *probes_rest_switches(struct kymo_probes *probes);

#endif
