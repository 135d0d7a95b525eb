#include "probe/install/traps.h"

#include <string.h>

#include "base/error.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/code/resolver.h"
#include "probe/memory/sessions.h"
#include "probe/options.h"
#include "probe/plan/allocate.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "proc/memory.h"
#include "procfs/maps.h"
#include "wire/form.h"

static bool is_of_file(const struct kymo_map *map)
{
	return map && map->executable && !map->shared && map->inode && map->path[0] == '/' &&
	       !kymo_is_shared_map(map) && !kymo_is_jumps_map(map);
}

/* The module that the address is in, opened if need be. SIZE_MAX: none. */
static size_t module_at(struct kymo_probes *probes, const struct kymo_map *map, uint64_t address)
{
	if (!probes_is_known(probes, map)) {
		struct kymo_error *error = probes_open_module(probes, map);

		kymo_error_destroy(error); /* as where no plan is found */
	}
	for (size_t i = 0; i < probes->modules.n; i++)
		if (!probes->modules.items[i].is_gone && address >= probes->modules.items[i].low &&
		    address < probes->modules.items[i].high)
			return i;
	return SIZE_MAX;
}

/* An address that is not that of the site, as of the marker where branches may land, has none. */
static struct kymo_error *add_site(struct kymo_probes *probes, size_t trap, size_t module)
{
	const uint64_t address = probes->wanted.options.traps->items[trap].address;
	const struct probe_meaning meaning = { .spec = trap, .module = module, .kind = KYMO_EVENT_INSTRUCTION };
	const struct probe_request request = { .vaddr = address - probes->modules.items[module].bias,
					       .location = (char *)"breakpoint",
					       .name = (char *)"breakpoint" };

	return probes_add_request(probes, &meaning, request.vaddr, &request);
}

struct kymo_error *kymo_probes_resolve_traps(struct kymo_probes *probes)
{
	const struct kymo_probes_traps *traps = probes->wanted.options.traps;
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(probes->process, &maps);

	if (error)
		return error;
	probes->faults.is_alone = true;
	probes->attempt.is_lenient = true; /* what has no plan is left out, and no thread is waited for */
	for (size_t i = 0; i < traps->n && !error; i++) {
		const struct kymo_map *map = kymo_maps_at(&maps, traps->items[i].address);
		size_t module = is_of_file(map) ? module_at(probes, map, traps->items[i].address) : SIZE_MAX;

		if (module != SIZE_MAX)
			error = add_site(probes, i, module);
	}
	kymo_maps_deinit(&maps);
	return error;
}

bool kymo_probes_trap(struct kymo_probes *probes, uint64_t address, struct kymo_trap_pad *ret)
{
	const struct probe_site *site = probes_site_at(probes, address);

	if (!site || !site->is_installed || !site->trap)
		return false;
	*ret = (struct kymo_trap_pad){
		.site = site->address,
		.pad = site->pad,
		.word = site->trap,
		.link = site->link,
		.plan = site->plan,
		.layout = site->layout,
	};
	return !probes_patch_of(site, ret->patch);
}
