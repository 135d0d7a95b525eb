/* Plans for pending sites, and their pads. Private to the room. */
#ifndef KYMO_PROBE_PLAN_PLAN_H
#define KYMO_PROBE_PLAN_PLAN_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_probes;
struct probe_layout;
struct probe_snapshot;

/*
 * Plan all pending sites and emit their pads, by a snapshot of the process. Sites that have no safe location are an
 * error when they are exact, and left out otherwise. On an error nothing is planned that was not before.
 * `contended_ret`, also set on an error: a site was refused that another recording is working on.
 */
struct kymo_error *probes_plan(struct kymo_probes *probes, const struct probe_snapshot *snapshot,
			       struct probe_layout *ret, bool *contended_ret);

/* Forget the plans of pending sites. */
struct kymo_error *probes_forget_plans(struct kymo_probes *probes);

#endif
