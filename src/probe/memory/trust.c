#include "probe/memory/trust.h"

#include <string.h>
#include <unistd.h>

#include "arch/plan.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "probe/memory/sessions.h"
#include "proc/process.h"
#include "procfs/maps.h"
#include "sym/module.h"
#include "sym/open.h"

void probe_trust_deinit(struct probe_trust *trust)
{
	if (trust->map && trust->file >= 0)
		close(trust->file);
	kymo_markers_destroy(trust->markers);
	kymo_module_close(trust->module);
	*trust = (struct probe_trust){ .process = trust->process };
}

static void look_at(struct probe_trust *trust, const struct kymo_map *map)
{
	if (trust->map == map)
		return;
	probe_trust_deinit(trust);
	trust->map = map;
	trust->file = -1;
	kymo_error_destroy(kymo_open_mapped(kymo_process_pid(trust->process), map, &trust->file));
}

bool probe_trust_is_of_file(struct probe_trust *trust, const struct kymo_map *map, uint64_t address, const void *bytes,
			    size_t size)
{
	look_at(trust, map);
	return kymo_is_of_file(trust->file, map, address, bytes, size);
}

bool probe_trust_original(struct probe_trust *trust, const struct kymo_map *map, const struct kymo_wire_site *site)
{
	look_at(trust, map);
	return trust->file < 0 || kymo_is_of_file(trust->file, map, site->address, site->original, site->patch_size);
}

bool probe_trust_is_text(const struct kymo_map *map, const struct kymo_wire_site *site)
{
	return map->executable && !map->shared && site->patch_size <= map->end - site->address;
}

bool probe_trust_is_link(const struct kymo_maps *maps, const struct kymo_wire_site *site)
{
	const struct kymo_map *map = kymo_maps_at(maps, site->link);

	return site->link == site->address || (map && kymo_is_jumps_map(map) && !map->shared && map->executable &&
					       map->end - site->link >= KYMO_JUMP_SIZE);
}

bool probe_trust_is_pad(const struct kymo_maps *maps, const struct kymo_session *session, uint64_t address)
{
	const struct kymo_map *map = kymo_maps_at(maps, address);

	return map && kymo_is_shared_map(map) && map->inode == session->inode && map->executable;
}

static void read_markers(struct probe_trust *trust)
{
	struct kymo_error *error = NULL;

	if (trust->has_markers || trust->file < 0)
		return;
	trust->has_markers = true;
	error = kymo_module_open_fd(trust->file, "", &trust->module);
	if (!error)
		error = kymo_markers_create(trust->module, &trust->markers);
	kymo_error_destroy(error);
}

/* The jump of a marker of kymo's own, from its NOP to its cold block. */
static bool is_jump(const struct kymo_marker_switch *one, const struct kymo_wire_site *site)
{
	uint8_t jump[KYMO_JUMP_SIZE];

	return !site->patch_size ||
	       (one->site && site->patch_size == KYMO_JUMP_SIZE && !kymo_encode_jump(one->site, one->cold, jump) &&
		!memcmp(jump, site->patched, sizeof(jump)));
}

static bool has_gate(const struct kymo_marker_list *list, const struct kymo_wire_site *site, uint64_t bias)
{
	for (size_t i = 0; i < list->n_switches; i++) {
		const struct kymo_marker_switch *one = &list->switches[i];

		if (bias + one->gate + 2 == site->next && bias + (one->site ? one->site : one->gate) == site->address &&
		    is_jump(one, site))
			return true;
	}
	return false;
}

static bool has_semaphore(const struct kymo_marker_list *list, const struct kymo_wire_site *site, uint64_t bias)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].semaphore && bias + list->items[i].semaphore == site->next &&
		    bias + list->items[i].location == site->address)
			return true;
	return false;
}

bool probe_trust_switch(struct probe_trust *trust, const struct kymo_maps *maps, const struct kymo_map *map,
			const struct kymo_wire_site *site)
{
	const struct kymo_map *counter = kymo_maps_at(maps, site->next);
	uint64_t vaddr;

	if (!counter || counter->shared || counter->executable || counter->end - site->next < sizeof(uint16_t))
		return false;
	look_at(trust, map);
	if (trust->file < 0)
		return counter->writable && (!site->patch_size || map->executable);
	read_markers(trust);
	if (!trust->markers ||
	    kymo_module_offset_to_vaddr(trust->module, map->offset + (site->address - map->start), &vaddr))
		return false;
	return site->flags & KYMO_WIRE_GATE ? has_gate(trust->markers, site, site->address - vaddr)
					    : has_semaphore(trust->markers, site, site->address - vaddr);
}
