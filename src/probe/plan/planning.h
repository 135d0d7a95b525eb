/* What plan.c and the files that it calls share: one round of planning. Private to the room. */
#ifndef KYMO_PROBE_PLAN_PLANNING_H
#define KYMO_PROBE_PLAN_PLANNING_H

#include "arch/pad.h"
#include "probe/plan/pool.h"
#include "procfs/maps.h"

struct probe_layout;
struct probe_region;
struct probe_snapshot;

#define PAD_ALIGN 32

struct planning {
	struct kymo_probes *probes;
	const struct probe_snapshot *snapshot;
	struct probe_layout *layout;
	struct kymo_maps maps; /* the snapshot's, and what is planned */
	struct probe_pool pool;
	struct probe_region *region;
	struct kymo_pad_env env;
	uint64_t bias;     /* of the module that is being planned in */
	uint32_t n_traps;  /* words of the region that pads have */
	uint32_t order;    /* of the next plan */
	bool is_contended; /* a site was refused that another recording is working on */
};

/* Rounded up to a multiple of `to`, a power of two. */
static inline uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

#endif
