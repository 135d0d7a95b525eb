/* Addresses for pads, and the pads themselves. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/probes.h"

#define PAGE (uint64_t)4096
#define PAD_ALIGN 32
#define SPREAD ((uint64_t)512 << 20)	/* sites of one region lie within this; the rest of ±2 GiB is for finding a hole */

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

void probes_regions_deinit(struct probe_regions *regions)
{
	for (size_t i = 0; i < regions->n; i++)
		free(regions->items[i].bytes);
	kymo_vec_deinit(regions);
}

static void fill_env(const struct kymo_probes *probes, const struct probe_region *region, struct kymo_pad_env *ret)
{
	*ret = (struct kymo_pad_env){
		.guest = region->address,
		.live = region->address + region->size - 2 * PAGE,
		.rseq_rings = probes->shared.is_sequenced ? probes->shared.address + probes->shared.rings_offset : 0,
		.rings = probes->shared.address + probes->shared.rings_offset +
			 (uint64_t)probes->shared.n_sequenced * KYMO_WIRE_RING_STRIDE,
		.n_rings = probes->shared.n_rings - probes->shared.n_sequenced,
		.vforks = probes->shared.address + probes->shared.rings_offset - KYMO_WIRE_VFORKS_BEFORE_RINGS,
		.n_cpus = probes->shared.n_cpus,
		.pid = (uint32_t)kymo_process_pid(probes->process),
		.stack_low = probes->stack_low,
		.stack_high = probes->stack_high,
	};
}

static struct kymo_error *emit_failed(const struct kymo_probes *probes, const struct probe_site *site, int err)
{
	return kymo_error_create(KYMO_ERROR_UNSAFE, "no pad for the probe at %s: %s",
				 probes_site_name(probes, site),
				 err == -ERANGE ? "something that its instructions refer to is out of reach from there" : strerror(-err));
}

static struct kymo_error *emit_site(struct kymo_probes *probes, struct probe_site *site, const struct kymo_pad_env *env,
				    struct probe_region *region, size_t room)
{
	struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
	uint64_t pad = region->address + region->n_bytes;
	int size;

	for (size_t i = 0; i < site->events.n; i++) {
		const struct kymo_probe_event *event = &probes->events.items[site->events.items[i]];

		events[i] = (struct kymo_pad_event){ event->id, event->args, event->spec->n_args };
	}
	if (site->is_guard)
		size = kymo_guard_emit(env, &site->plan, site->address, pad, region->bytes + region->n_bytes,
				       room - region->n_bytes, site->insn_at);
	else
		size = kymo_pad_emit(env, &site->plan, site->address, pad, events, site->events.n,
				     region->bytes + region->n_bytes, room - region->n_bytes, site->insn_at);
	if (size < 0)
		return emit_failed(probes, site, size);
	site->pad = pad;
	site->pad_size = (uint32_t)size;
	site->entry = site->is_guard ? 0 : (uint32_t)kymo_pad_entry(env, site->events.n);
	region->n_bytes = align_up(region->n_bytes + (size_t)size, PAD_ALIGN);
	return NULL;
}

/* Emit the pads of the pending ones among sites [first, end) into a fresh region. */
static struct kymo_error *emit_region(struct kymo_probes *probes, size_t first, size_t end, struct probe_region *region,
				      size_t room)
{
	struct kymo_pad_env env;
	const uint8_t *guest;
	size_t guest_size;

	fill_env(probes, region, &env);
	guest = kymo_pad_guest(&guest_size);
	memset(region->bytes, 0xcc, room);
	memcpy(region->bytes, guest, guest_size);
	region->n_bytes = align_up(guest_size, PAD_ALIGN);
	for (size_t i = first; i < end; i++) {
		struct kymo_error *error;

		if (probes->sites.items[i].installed)
			continue;
		error = emit_site(probes, &probes->sites.items[i], &env, region, room);
		if (error)
			return error;
	}
	return NULL;
}

static size_t room_for(const struct kymo_probes *probes, size_t first, size_t end)
{
	size_t guest_size, room;

	kymo_pad_guest(&guest_size);
	room = align_up(guest_size, PAD_ALIGN);
	for (size_t i = first; i < end; i++)
		if (!probes->sites.items[i].installed)
			room += align_up(kymo_pad_size_max(probes->sites.items[i].is_guard ? 1 : probes->sites.items[i].events.n), PAD_ALIGN);
	return align_up(room, PAGE);
}

/* A hole for `size` bytes that is not promised to another region of this round. */
static uint64_t hole_for(struct kymo_maps *maps, uint64_t low, uint64_t high, uint64_t size)
{
	uint64_t hole = kymo_maps_hole(maps, low, high, size);
	struct kymo_map taken = { .start = hole, .end = hole + size };
	size_t at;

	if (!hole || !kymo_vec_reserve(maps, maps->n + 1))
		return 0;
	taken.path = strdup("");
	if (!taken.path)
		return 0;
	for (at = maps->n; at > 0 && maps->items[at - 1].start > hole; at--)
		;
	memmove(&maps->items[at + 1], &maps->items[at], (maps->n - at) * sizeof(taken));
	maps->items[at] = taken;
	maps->n++;
	return hole;
}

static struct kymo_error *place_cluster(struct kymo_probes *probes, struct kymo_maps *maps, size_t first, size_t end,
					struct probe_regions *regions)
{
	size_t room = room_for(probes, first, end);
	struct probe_region region = { .size = room + 2 * PAGE, .at = probes->shared.pads_used };
	const struct probe_module *from = &probes->modules.items[probes->sites.items[first].module];
	const struct probe_module *to = &probes->modules.items[probes->sites.items[end - 1].module];
	struct kymo_error *error;

	if (region.size > KYMO_WINDOW_SIZE - probes->shared.pads_used)
		return kymo_error_create(KYMO_ERROR_FAILED, "the pads of all probes would need more than %u MiB",
					 (unsigned int)(KYMO_WINDOW_SIZE >> 20));
	region.address = hole_for(maps, from->low, to->high, region.size);
	if (!region.address)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "there is no hole of %" PRIu64 " KiB within 2 GiB of %s for its pads",
					 region.size >> 10, from->path);
	region.bytes = malloc(room);
	if (!region.bytes || !kymo_vec_push(regions, region)) {
		free(region.bytes);
		return &kymo_error_no_memory;
	}
	probes->shared.pads_used += region.size;
	error = emit_region(probes, first, end, &regions->items[regions->n - 1], room);
	return error;
}

struct kymo_error *probes_place(struct kymo_probes *probes, struct probe_regions *ret)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	size_t first = 0;

	if (error)
		return error;
	while (first < probes->sites.n && !error) {
		size_t end = first + 1;

		if (probes->sites.items[first].installed) {
			first++;
			continue;
		}
		while (end < probes->sites.n &&
		       probes->modules.items[probes->sites.items[end].module].high -
				       probes->modules.items[probes->sites.items[first].module].low <
			       SPREAD)
			end++;
		while (probes->sites.items[end - 1].installed)
			end--;
		error = place_cluster(probes, &maps, first, end, ret);
		first = end;
	}
	kymo_maps_deinit(&maps);
	return error;
}
