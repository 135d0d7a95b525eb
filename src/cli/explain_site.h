/*
 * One site, as `kymo explain` shows it: the code there, the tactic, why it is safe, and why others were not taken.
 */
#ifndef KYMO_CLI_EXPLAIN_SITE_H
#define KYMO_CLI_EXPLAIN_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/plan.h"
#include "base/vec.h"
#include "cli/indirect.h"
#include "probe/code/jit.h"

struct kymo_module;

/* A module under explanation, and how its sites came out. */
struct cli_explainer {
	struct kymo_module *module;
	struct kymo_jit *jit; /* or this, without a module */
	struct kymo_code *code;
	struct cli_indirects indirects;
	unsigned int watched_faults; /* KYMO_FAULT_…: what the process handles */
	KYMO_VEC(uint64_t) chosen;   /* functions of IFUNCs that were explained */
	bool is_begun;               /* something was printed */
	size_t n_sites;
	size_t n_by_tactic[KYMO_N_TACTICS]; /* NONE: refused */
};

/* A part of the output begins: an empty line separates them. */
void cli_explain_begin(struct cli_explainer *explainer);

/* Plan a probe at `vaddr` of the module or of `jit`, print how that came out, and count it. */
void cli_explain_site(struct cli_explainer *explainer, uint64_t vaddr);

#endif
