/* Plans for pending sites, and their pads. Private to the room. */
#ifndef KYMO_PROBE_PLAN_PLACE_H
#define KYMO_PROBE_PLAN_PLACE_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_probes;
struct probe_layout;

/*
 * Plan all pending sites and emit their pads; the process may run. Sites that have no safe place are an error when they
 * are exact, and left out otherwise. On an error nothing is planned that was not before.
 * `contended_ret`, also set on an error: a site was refused that another recording is working on.
 */
struct kymo_error *probes_place(struct kymo_probes *probes, struct probe_layout *ret, bool *contended_ret);

/* Forget the plans of pending sites. */
struct kymo_error *probes_unplace(struct kymo_probes *probes);

#endif
