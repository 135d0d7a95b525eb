/* What place.c and settle.c share: one round of planning. Private to the room. */
#ifndef KYMO_PROBE_PLAN_PLACING_H
#define KYMO_PROBE_PLAN_PLACING_H

#include "arch/pad.h"
#include "probe/coexist/peers.h"
#include "probe/plan/pool.h"
#include "procfs/maps.h"

struct probe_layout;
struct probe_region;

#define PAD_ALIGN 32

struct placing {
	struct kymo_probes *probes;
	struct probe_layout *layout;
	struct probe_peers peers;
	struct kymo_maps maps;
	struct probe_pool room;
	struct probe_region *region;
	struct kymo_pad_env env;
	uint64_t bias;     /* of the module that is being planned in */
	uint32_t order;    /* of the next plan */
	bool is_contended; /* a site was refused that another recording is working on */
};

/* Rounded up to a multiple of `to`, a power of two. */
static inline uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

#endif
