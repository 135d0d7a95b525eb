/* What place.c and settle.c share: one round of planning. Private to the room. */
#ifndef KYMO_PROBE_PLACING_H
#define KYMO_PROBE_PLACING_H

#include "probe/probes.h"
#include "probe/room.h"

#define PAD_ALIGN 32

struct placing {
	struct kymo_probes *probes;
	struct probe_layout *layout;
	struct probe_others others;
	struct kymo_maps maps;
	struct probe_room room;
	struct probe_region *region;
	struct kymo_pad_env env;
	uint64_t bias;  /* of the module that is being planned in */
	uint32_t order; /* of the next plan */
};

/* Rounded up to a multiple of `to`, a power of two. */
static inline uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/* Whether anybody wants something of it that was not refused. */
bool probes_is_wanted(const struct probe_site *site);

/* What a planned site writes to the text. Negative errno. */
int probes_patch_of(const struct probe_site *site, uint8_t out[KYMO_PATCH_MAX]);

/* A site with a plan gets its pad, its trampoline, and its marks in the text. */
struct kymo_error *probes_settle(struct placing *placing, struct probe_site *site);

/* Plan and settle the site at `address`, which somebody wants; or refuse it. */
struct kymo_error *probes_place_site(struct placing *placing, uint64_t address);

#endif
