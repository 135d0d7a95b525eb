/* A region: where the pads of sites near each other are, and the trampolines to them. Private to the room. */
#ifndef KYMO_PROBE_PLAN_REGION_H
#define KYMO_PROBE_PLAN_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_maps;
struct planning;
struct probe_module;

/* One for the pending ones among sites [first, end): it becomes `planning->region`, and `planning->pool` is what
 * trampolines to it may have. */
struct kymo_error *probes_open_region(struct planning *planning, size_t first, size_t end);

/* One for the code of a module's own: `room` bytes of it at first, `size` at the most. */
struct kymo_error *probes_open_region_of(struct planning *planning, const struct probe_module *module, uint64_t size,
					 uint64_t room);

/* The region is as large as its pads, with at least a page of them after the live page. */
void probes_close_region(struct planning *planning);

/* Keep a stretch of addresses from being used by others of this round. False when memory is out. */
bool probes_occupy(struct kymo_maps *maps, uint64_t address, uint64_t size);

#endif
