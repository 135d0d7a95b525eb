/*
 * Pads that trap where a condition holds (arch/pad.h), for breakpoints: a recording without events. Its sites, regions
 * and journal are as those of others, and kymo_remove() takes it out. It watches nothing.
 */
#ifndef KYMO_PROBE_INSTALL_TRAPS_H
#define KYMO_PROBE_INSTALL_TRAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/pad.h"
#include "arch/plan.h"

struct kymo_probes;

/* Find the sites. What is in no file, or has no plan, is left out. */
struct kymo_error *kymo_probes_resolve_traps(struct kymo_probes *probes);

/* What an address has got. */
struct kymo_trap_pad {
	uint64_t site, pad, word, link; /* link: the address of the jump to the pad */
	uint8_t patch[KYMO_PATCH_MAX];
	struct kymo_plan plan;
	struct kymo_pad_layout layout;
};

/* False: it was left out. */
bool kymo_probes_trap(struct kymo_probes *probes, uint64_t address, struct kymo_trap_pad *ret);

#endif
