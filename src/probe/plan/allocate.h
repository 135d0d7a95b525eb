/* One site: its plan, its pad, its trampoline. Private to the room. */
#ifndef KYMO_PROBE_PLAN_ALLOCATE_H
#define KYMO_PROBE_PLAN_ALLOCATE_H

#include "arch/plan.h"
#include "base/error.h"

struct planning;
struct probe_site;

/* Whether a spec wants something of it that was not refused. */
bool probes_is_wanted(const struct probe_site *site);

/* What a planned site writes to the text. Negative errno. */
int probes_patch_of(const struct probe_site *site, uint8_t out[KYMO_PATCH_MAX]);

/* A site with a plan gets its pad, its trampoline, and its marks in the text. */
struct kymo_error *probes_allocate(struct planning *planning, struct probe_site *site);

/* Plan and allocate the site at `address`, which is to be probed; or refuse it. */
struct kymo_error *probes_plan_site(struct planning *planning, uint64_t address);

#endif
