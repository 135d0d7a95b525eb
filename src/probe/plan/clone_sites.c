#include "probe/plan/clone_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/clones.h"
#include "base/page.h"
#include "probe/code/modules.h"
#include "probe/memory/layout.h"
#include "probe/memory/shared.h"
#include "probe/plan/planning.h"
#include "probe/plan/region.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "wire/clones.h"

#define POINT_SIZE sizeof(struct kymo_wire_clone_point)

/* ---- code and map ---------------------------------------------------------------------------- */

static struct kymo_error *emit_failed(const struct probe_module *module, int err)
{
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	return kymo_error_create(KYMO_ERROR_UNSAFE, "no clones for the functions of %s: %s", module->path,
				 err == -ERANGE ? "something that their instructions refer to is out of reach"
						: strerror(-err));
}

/* The points are behind the code: `size` bytes from `region->live` on. */
static struct kymo_error *append_points(struct probe_region *region, const struct kymo_clones *clones, size_t size,
					uint64_t bias)
{
	const struct kymo_clone_map *map = kymo_clones_map(clones);
	const size_t at = (size_t)(region->live - region->address) + KYMO_PAGE_SIZE;
	const struct kymo_wire_clones head = { .magic = KYMO_WIRE_CLONES_MAGIC,
					       .size = (uint32_t)align_up(size, POINT_SIZE),
					       .n_points = (uint32_t)map->points.n };
	const size_t end = at + head.size + map->points.n * POINT_SIZE;
	uint8_t *bytes = end > region->size ? NULL : realloc(region->bytes, end);

	if (!bytes)
		return end > region->size ? kymo_error_create(KYMO_ERROR_FAILED,
							      "the clones of so many functions need more than %" PRIu64
							      " MiB; choose fewer functions",
							      region->size >> 20)
					  : &kymo_error_no_memory;
	region->bytes = bytes;
	region->cap = end;
	memcpy(bytes + at, &head, sizeof(head));
	memset(bytes + at + size, 0, head.size - size);
	for (size_t i = 0; i < map->points.n; i++) {
		const struct kymo_wire_clone_point point = { .address = map->points.items[i].vaddr + bias,
							     .at = map->points.items[i].at + (uint32_t)sizeof(head) };

		memcpy(bytes + at + head.size + i * POINT_SIZE, &point, sizeof(point));
	}
	region->n_bytes = end;
	return NULL;
}

static struct kymo_error *emit(struct planning *planning, struct probe_clones *own)
{
	const struct probe_module *module = &planning->probes->modules.items[own->module];
	struct probe_region *region = planning->region;
	const uint64_t at = region->live - region->address + KYMO_PAGE_SIZE + sizeof(struct kymo_wire_clones);
	const struct kymo_clone_env env = { .bias = module->bias,
					    .position = PROBE_CLONES_WORD,
					    .first_site = own->first_site,
					    .never_holds = true,
					    .arena = planning->probes->shared.arena.address };
	const int size = kymo_clones_emit(own->clones, &env, PROBE_CLONES_TID, region->address + at, region->bytes + at,
					  region->cap - at);

	if (size < 0)
		return emit_failed(module, size);
	own->code = region->address + at;
	own->size = (uint64_t)size;
	return append_points(region, own->clones, (size_t)size + sizeof(struct kymo_wire_clones), module->bias);
}

/* ---- sites ----------------------------------------------------------------------------------- */

static struct probe_site site_of(const struct probe_clones *own, uint64_t bias, const struct kymo_clones_write *write)
{
	struct probe_site site = {
		.address = write->vaddr + bias,
		.module = own->module,
		.link = write->link + bias,
		.pad = own->code + write->to,
		.is_catch = true,
		.is_planned = true,
		.plan = { .vaddr = write->vaddr,
			  .window = write->size,
			  .patch_size = write->size,
			  .lock_size = write->size,
			  .trampoline = write->link == write->vaddr ? 0 : write->link },
	};

	memcpy(site.plan.original, write->original, write->size);
	memcpy(site.plan.patch, write->bytes, write->size);
	return site;
}

static struct kymo_error *add_sites(struct planning *planning, const struct probe_clones *own)
{
	struct kymo_probes *probes = planning->probes;
	const struct kymo_clones_write *writes;
	size_t n;

	writes = kymo_clones_writes(own->clones, &n);
	if (probes->shared.n_sites + probes->sites.n + n > KYMO_JOURNAL_CAPACITY)
		return kymo_error_create(KYMO_ERROR_FAILED,
					 "the clones of so many functions need more than %u jumps; choose fewer "
					 "functions",
					 KYMO_JOURNAL_CAPACITY);
	for (size_t i = 0; i < n; i++) {
		struct probe_site site = site_of(own, probes->modules.items[own->module].bias, &writes[i]);

		site.order = planning->order++;
		if (!kymo_vec_push(&probes->sites, site))
			return &kymo_error_no_memory;
	}
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct probe_site *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* At most, with the point of each byte that code may have. */
static uint64_t room_for(const struct probe_clones *own)
{
	const size_t size = kymo_clones_size(own->clones);

	return sizeof(struct kymo_wire_clones) + size * (1 + POINT_SIZE / 2);
}

struct kymo_error *probes_plan_clones(struct planning *planning)
{
	struct kymo_probes *probes = planning->probes;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->clones.n && !error; i++) {
		struct probe_clones *own = &probes->clones.items[i];

		error = probes_open_region_of(planning, &probes->modules.items[own->module], room_for(own),
					      sizeof(struct kymo_wire_clones) + kymo_clones_size(own->clones));
		if (!error)
			error = emit(planning, own);
		if (!error)
			error = add_sites(planning, own);
		if (!error)
			probes_close_region(planning);
	}
	if (!error && probes->sites.n)
		qsort(probes->sites.items, probes->sites.n, sizeof(probes->sites.items[0]), by_address);
	return error;
}
