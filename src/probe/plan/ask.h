/* Asking the planner about a site. Private to the room. */
#ifndef KYMO_PROBE_PLAN_ASK_H
#define KYMO_PROBE_PLAN_ASK_H

#include "arch/plan.h"

struct kymo_code;
struct planning;
struct probe_site;

/* As kymo_plan(). `reasons` gets the sentences of what was refused, where all was. */
int probes_ask_planner(struct planning *planning, const struct probe_site *site, struct kymo_code *code,
		       struct kymo_plan plans[KYMO_PLANS_MAX], size_t *n_ret, char *reasons, size_t size);

#endif
