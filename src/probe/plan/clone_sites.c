#include "probe/plan/clone_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/clones.h"
#include "arch/trap.h"
#include "base/page.h"
#include "probe/code/modules.h"
#include "probe/memory/layout.h"
#include "probe/memory/shared.h"
#include "probe/plan/clone_beside.h"
#include "probe/plan/planning.h"
#include "probe/plan/region.h"
#include "probe/options.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "wire/clones.h"

#define WINDOW_MIN ((uint64_t)64 << 10) /* less is not tried */
#define POINT_SIZE sizeof(struct kymo_wire_clone_point)

static void clones_deinit(struct probe_clones *own)
{
	kymo_clones_destroy(own->clones);
	free(own->stays);
}

void probes_clones_deinit(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->clones.n; i++)
		clones_deinit(&probes->clones.items[i]);
	kymo_vec_deinit(&probes->clones);
	kymo_vec_deinit(&probes->unclonable);
}

/* ---- code and map ---------------------------------------------------------------------------- */

/* `fits_ret` is false where the code is larger than what is left of the window. */
static struct kymo_error *emit_failed(const struct probe_module *module, int err, bool *fits_ret)
{
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	*fits_ret = err != -ENOSPC;
	if (!*fits_ret)
		return NULL;
	return kymo_error_create(KYMO_ERROR_UNSAFE, "no clones for the functions of %s: %s", module->path,
				 err == -ERANGE ? "something that their instructions refer to is out of reach"
						: strerror(-err));
}

/* The points are behind the code: `size` bytes from `region->live` on. */
static struct kymo_error *append_points(struct probe_region *region, const struct kymo_clones *clones, size_t size,
					uint64_t bias, bool *fits_ret)
{
	const struct kymo_clone_map *map = kymo_clones_map(clones);
	const size_t at = (size_t)(region->live - region->address) + KYMO_PAGE_SIZE;
	const struct kymo_wire_clones head = { .magic = KYMO_WIRE_CLONES_MAGIC,
					       .size = (uint32_t)align_up(size, POINT_SIZE),
					       .n_points = (uint32_t)map->points.n };
	const size_t end = at + head.size + map->points.n * POINT_SIZE;
	uint8_t *bytes;

	*fits_ret = end <= region->size;
	if (!*fits_ret)
		return NULL;
	bytes = realloc(region->bytes, end);
	if (!bytes)
		return &kymo_error_no_memory;
	region->bytes = bytes;
	region->cap = end;
	memcpy(bytes + at, &head, sizeof(head));
	memset(bytes + at + size, 0, head.size - size);
	for (size_t i = 0; i < map->points.n; i++) {
		const struct kymo_clone_point *from = &map->points.items[i];
		const struct kymo_wire_clone_point point = { .address = from->vaddr + bias,
							     .at = from->at + (uint32_t)sizeof(head),
							     .lowered = from->lowered,
							     .pushed = from->pushed < KYMO_CLONE_HOLDS_NONE
									       ? from->pushed + 1
									       : 0 };

		memcpy(bytes + at + head.size + i * POINT_SIZE, &point, sizeof(point));
	}
	region->n_bytes = end;
	return NULL;
}

/* After the clones, one for each pad that goes on in one. The size of all. */
static int emit_hops(const struct kymo_probes *probes, const struct probe_clones *own, uint8_t *code, int used,
		     size_t cap)
{
	const uint64_t bias = probes->modules.items[own->module].bias, at = own->hops - (uint64_t)used;
	const struct kymo_clones_write *writes;
	size_t n;

	writes = kymo_clones_writes(own->clones, &n);
	for (size_t i = 0; i < n; i++) {
		int err;

		if (!probes_before(probes, writes[i].vaddr + bias))
			continue;
		if (cap - (size_t)used < KYMO_CLONE_HOP_SIZE)
			return -ENOSPC;
		err = kymo_clone_emit_hop(at + writes[i].to, at + (uint64_t)used, code + used, KYMO_CLONE_HOP_SIZE);
		if (err < 0)
			return err;
		memset(code + used + err, KYMO_TRAP_BYTE, (size_t)(KYMO_CLONE_HOP_SIZE - (unsigned int)err));
		used += KYMO_CLONE_HOP_SIZE;
	}
	return used;
}

static struct kymo_error *emit(struct planning *planning, struct probe_clones *own, bool *fits_ret)
{
	const struct probe_module *module = &planning->probes->modules.items[own->module];
	struct probe_region *region = planning->region;
	const uint64_t at = region->live - region->address + KYMO_PAGE_SIZE + sizeof(struct kymo_wire_clones);
	const struct kymo_clone_env env = { .bias = module->bias,
					    .position = PROBE_CLONES_WORD,
					    .first_site = own->first_site,
					    .checks_held = true,
					    .arena = planning->probes->shared.arena.address };
	int size = kymo_clones_emit(own->clones, &env, PROBE_CLONES_TID, region->address + at, region->bytes + at,
				    region->cap - at);

	own->hops = region->address + at + (uint64_t)size;
	if (size >= 0)
		size = emit_hops(planning->probes, own, region->bytes + at, size, region->cap - at);
	if (size < 0)
		return emit_failed(module, size, fits_ret);
	own->code = region->address + at;
	own->size = (uint64_t)size;
	return append_points(region, own->clones, (size_t)size + sizeof(struct kymo_wire_clones), module->bias,
			     fits_ret);
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* Where the text has a probe that site is none of the text: the probe's pad goes on at `hop`. Its entry of the journal
 * is the probe's, but for where it leads: what leaves first hands the text over to the other. */
static void put_behind(const struct kymo_probes *others, const struct probe_site *probe, uint64_t hop,
		       struct probe_site *site)
{
	site->ahead = kymo_shared_word(&others->shared, probe->order);
	site->leads_to = probe->pad + probe->layout.displaced;
	site->link = probe->link;
	site->plan = probe->plan;
	site->layout.inner = (uint32_t)(hop - site->pad);
}

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
	uint64_t hop = own->hops;
	size_t n;

	writes = kymo_clones_writes(own->clones, &n);
	for (size_t i = 0; i < n; i++) {
		struct probe_site site = site_of(own, probes->modules.items[own->module].bias, &writes[i]);
		const struct probe_site *probe = probes_before(probes, site.address);

		if (probe) {
			put_behind(probes->beside, probe, hop, &site);
			hop += KYMO_CLONE_HOP_SIZE;
		}
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

static size_t size_of(const struct probe_clones *own)
{
	return kymo_clones_size(own->clones) + own->n_hops * KYMO_CLONE_HOP_SIZE;
}

/* At most, with the point of each byte that code may have. */
static uint64_t room_for(const struct probe_clones *own)
{
	const size_t size = size_of(own);

	return sizeof(struct kymo_wire_clones) + size * (1 + POINT_SIZE / 2);
}

/* The clones of the file do not fit beside those of the files before: it has none. */
static struct kymo_error *leave_out(struct planning *planning, size_t i)
{
	struct kymo_probes *probes = planning->probes;
	struct probe_layout *layout = planning->layout;

	if (planning->region) {
		free(planning->region->bytes);
		layout->regions.n--;
	}
	if (!kymo_vec_push(&probes->unclonable, probes->clones.items[i].module))
		return &kymo_error_no_memory;
	clones_deinit(&probes->clones.items[i]);
	memmove(&probes->clones.items[i], &probes->clones.items[i + 1],
		(probes->clones.n - i - 1) * sizeof(probes->clones.items[0]));
	probes->clones.n--;
	return NULL;
}

static struct kymo_error *plan_file(struct planning *planning, struct probe_clones *own, bool *fits_ret)
{
	struct kymo_probes *probes = planning->probes;
	struct kymo_error *error;

	planning->region = NULL;
	*fits_ret = KYMO_WINDOW_SIZE - probes->shared.pads_used > WINDOW_MIN;
	if (!*fits_ret)
		return NULL;
	error = probes_open_region_of(planning, &probes->modules.items[own->module], room_for(own),
				      sizeof(struct kymo_wire_clones) + size_of(own));
	if (!error)
		error = emit(planning, own, fits_ret);
	if (error || !*fits_ret)
		return error;
	error = add_sites(planning, own);
	if (!error)
		probes_close_region(planning);
	return error;
}

struct kymo_error *probes_clones_given_up(bool is_running)
{
	return kymo_error_create(KYMO_ERROR_FAILED, "stopped while clones were made: %s",
				 is_running ? "the process runs on without them" : "the command was not executed");
}

struct kymo_error *probes_plan_clones(struct planning *planning)
{
	struct kymo_probes *probes = planning->probes;
	const struct kymo_probes_clones *wanted = probes->wanted.options.clones;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < probes->clones.n && !error;) {
		bool fits;

		if (wanted->is_given_up && wanted->is_given_up(wanted->data))
			return probes_clones_given_up(wanted->is_running);
		error = plan_file(planning, &probes->clones.items[i], &fits);
		if (!error && !fits)
			error = leave_out(planning, i);
		else
			i++;
	}
	if (!error && probes->sites.n)
		qsort(probes->sites.items, probes->sites.n, sizeof(probes->sites.items[0]), by_address);
	return error;
}
