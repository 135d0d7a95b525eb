/* The memory that planned sites need. Private to the room. */
#ifndef KYMO_PROBE_MEMORY_LAYOUT_H
#define KYMO_PROBE_MEMORY_LAYOUT_H

#include <stdint.h>

#include "base/vec.h"

/* A stretch of pads for sites that are near each other, before it is in the target: guest code, the live page, pads. */
struct probe_region {
	uint64_t address, size; /* in the target */
	uint64_t at;            /* in the window */
	uint64_t live;          /* in the target */
	uint8_t *bytes;         /* all of it */
	size_t n_bytes, cap;
};

/* A stretch of trampolines. */
struct probe_stretch {
	uint64_t address, size;
	uint64_t at; /* in the file that it is mapped from */
};

/* A trampoline: a jump at `address` to `target`. */
struct probe_trampoline {
	uint64_t address, target;
};

/* Memory that the pending sites need. */
struct probe_layout {
	KYMO_VEC(struct probe_region) regions;
	KYMO_VEC(struct probe_stretch) stretches;
	KYMO_VEC(struct probe_stretch) joined;         /* of other recordings, with trampolines that are shared now */
	KYMO_VEC(struct probe_trampoline) trampolines; /* sorted by address */
};

/* Free what it holds. */
void probes_layout_deinit(struct probe_layout *layout);

#endif
