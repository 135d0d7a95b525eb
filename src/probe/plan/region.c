#include "probe/plan/region.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/trap.h"
#include "arch/writes.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/code/events.h"
#include "probe/code/modules.h"
#include "probe/code/words.h"
#include "probe/memory/data.h"
#include "probe/memory/layout.h"
#include "probe/memory/shared.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/plan/clone_sites.h"
#include "probe/plan/planning.h"
#include "probe/plan/pool.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/snapshot/snapshot.h"
#include "probe/spec/spec.h"
#include "procfs/maps.h"

#define REACH ((uint64_t)0x7fff0000)
#define REGION_MAX ((uint64_t)64 << 20)
#define MIDDLE ((uint64_t)12 << 20)
#define KEEP_CLEAR ((uint64_t)256 << 20) /* above the heap, below the stack */
/*
 * The same of trampolines, which have no choice of their addresses: an entry without a pun gets a jump that another
 * tool's breakpoint does not survive. Beyond it brk() may fail, and the C library maps memory in its place.
 */
#define HEAP_TO_GROW ((uint64_t)32 << 20)
#define HEAP_TO_COME ((uint64_t)1 << 20) /* of a program that has none yet */
#define LOWEST ((uint64_t)1 << 20)
#define HIGHEST \
	((uint64_t)0x7ffffffff000) /* arch/x86/include/asm/page_64_types.h: TASK_SIZE_MAX, with 4 levels of page \
				      tables */

/* What comes first in a region: the shared code, then what that and pads know of the rings. */
static uint64_t geometry_offset(void)
{
	size_t size;

	kymo_pad_guest(&size);
	return align_up(size, PAD_ALIGN);
}

static uint64_t guest_size_of(const struct kymo_probes *probes)
{
	return geometry_offset() + kymo_pad_rings_size(probes->shared.n_rings);
}

static void write_guest(const struct kymo_probes *probes, const struct kymo_pad_env *env, uint8_t *out)
{
	struct kymo_pad_rings *geometry = (void *)(out + geometry_offset());
	const uint8_t *guest;
	size_t size;

	guest = kymo_pad_guest(&size);
	memcpy(out, guest, size);
	*geometry = (struct kymo_pad_rings){
		.first = env->rings - (uint64_t)env->n_sequenced * KYMO_WIRE_RING_STRIDE,
		.n = probes->shared.n_rings,
		.overwrite = probes->wanted.options.overwrite,
	};
	for (uint32_t i = 0; i < geometry->n; i++) {
		struct kymo_shared_ring ring = kymo_probes_ring(probes, i);
		uint64_t data_offset = (uint64_t)(ring.data - (const uint8_t *)ring.shared);

		geometry->rings[i] = (struct kymo_pad_ring){
			.end = data_offset + ring.n_subbuffers * ring.subbuffer_size,
			.data_offset = data_offset,
			.subbuffer_size = ring.subbuffer_size,
			.n_subbuffers = ring.n_subbuffers,
			.cpu = ring.cpu,
		};
	}
}

static void fill_env(const struct kymo_probes *probes, const struct probe_region *region, struct kymo_pad_env *ret)
{
	uint64_t first_live = probes->shared.n_regions ? probes->shared.live[0] : region->live;

	*ret = (struct kymo_pad_env){
		.guest = region->address,
		.geometry = region->address + geometry_offset(),
		.live = region->live,
		.rseq_rings = probes->shared.is_sequenced ? probes->shared.data_address + KYMO_WIRE_RINGS_OFFSET : 0,
		.rings = probes->shared.data_address + KYMO_WIRE_RINGS_OFFSET +
			 (uint64_t)probes->shared.n_sequenced * KYMO_WIRE_RING_STRIDE,
		.n_sequenced = probes->shared.n_sequenced,
		.n_rings = probes->shared.n_rings - probes->shared.n_sequenced,
		.vforks = first_live + KYMO_PAD_LIVE_VFORK_LIST,
		.header = probes->shared.address,
		.words = kymo_shared_words_address(&probes->shared),
		.data = probes->shared.data_address,
		.samples = first_live + KYMO_PAD_LIVE_SAMPLES,
		.lease = first_live + KYMO_PAD_LIVE_LEASE,
		.readable = probes->shared.readable_at ? probes->shared.data_address + probes->shared.readable_at : 0,
		.position = probes->wanted.options.may_go_on ? PROBE_CLONES_WORD : 0,
		.n_cpus = probes->shared.n_cpus,
		.stack_low = probes->stacks.low,
		.stack_high = probes->stacks.high,
	};
}

/* The forms of a site's events, by their specs: what is refused has no event. */
static size_t forms_of(const struct kymo_probes *probes, const struct probe_site *site)
{
	const struct kymo_probes_traps *traps = probes->wanted.options.traps;
	size_t size = 0;

	if (traps && site->requests.n) {
		const struct kymo_probes_trap *trap = &traps->items[site->requests.items[0].spec];

		return kymo_pad_forms_size(&(struct kymo_pad_event){ .filter = trap->condition, .print = trap->print });
	}
	if (traps)
		return 0;
	for (size_t i = 0; i < site->requests.n; i++) {
		const struct kymo_spec *spec = &probes->wanted.specs[site->requests.items[i].spec];
		struct kymo_probe_event event = { .spec = spec };
		/* Narrow arguments of an SDT probe have to be extended wherever they are used. */
		const size_t times = spec->n_operands_needed ? 2 : 1;

		probe_event_arguments(spec, &event);
		size += times *
			kymo_pad_forms_size(&(struct kymo_pad_event){
				.args = event.args,
				.n_args = event.n_args,
				.filter = spec->filter,
				.sample = { .kind = spec->sampling ? KYMO_PAD_SAMPLE_EVERY : KYMO_PAD_SAMPLE_ALL } });
	}
	return size;
}

/* The most that the pads of the pending ones among sites [first, end) can need. */
static uint64_t room_for(const struct kymo_probes *probes, size_t first, size_t end)
{
	uint64_t guest_size = guest_size_of(probes), room;

	room = kymo_page_up(guest_size) + KYMO_PAGE_SIZE;
	for (size_t i = first; i < end; i++)
		if (!probes->sites.items[i].is_installed)
			room += forms_of(probes, &probes->sites.items[i]) +
				align_up(kymo_pad_size_max(NULL, probes->sites.items[i].requests.n +
									 probes->sites.items[i].is_guard +
									 probes->sites.items[i].is_strike),
					 PAD_ALIGN) +
				2 * align_up(kymo_pad_size_max(NULL, 0), PAD_ALIGN);
	room = kymo_page_up(room);
	return room < REGION_MAX ? room : REGION_MAX;
}

/* A hole, without the addresses that the heap will have. */
static bool add_hole(struct planning *planning, uint64_t low, uint64_t high, uint64_t heap)
{
	uint64_t heap_end = heap + HEAP_TO_COME;

	if (!heap || heap >= high || heap_end <= low)
		return probe_pool_add_hole(&planning->pool, low, high);
	return (heap <= low || probe_pool_add_hole(&planning->pool, low, heap)) &&
	       (heap_end >= high || probe_pool_add_hole(&planning->pool, heap_end, high));
}

/* Where trampolines may be: wherever nothing is mapped that they and the region can reach. */
static bool find_room(struct planning *planning, const struct probe_region *region)
{
	uint64_t low = region->address + region->size > REACH ? region->address + region->size - REACH : LOWEST;
	uint64_t high = region->address + REACH < HIGHEST ? region->address + REACH : HIGHEST,
		 at = low > LOWEST ? low : LOWEST;
	const struct kymo_maps *maps = &planning->maps;
	uint64_t heap = planning->snapshot->status.heap_start;

	probe_pool_deinit(&planning->pool);
	for (size_t i = 0; i <= maps->n && at < high; i++) {
		const struct kymo_map *map = i < maps->n ? &maps->items[i] : NULL;
		uint64_t end = map && map->start < high ? map->start : high;

		if (map && !strcmp(map->path, "[stack]"))
			end = end > KEEP_CLEAR ? end - KEEP_CLEAR : 0;
		if (end > at && !add_hole(planning, at, end, heap))
			return false;
		if (!map)
			break;
		if (map->end > at)
			at = map->end + (!strcmp(map->path, "[heap]") ? HEAP_TO_GROW : 0);
	}
	return true;
}

bool probes_occupy(struct kymo_maps *maps, uint64_t address, uint64_t size)
{
	struct kymo_map taken = { .start = address, .end = address + size };
	size_t at;

	if (!kymo_vec_reserve(maps, maps->n + 1))
		return false;
	taken.path = strdup("");
	if (!taken.path)
		return false;
	for (at = maps->n; at > 0 && maps->items[at - 1].start > address; at--)
		;
	memmove(&maps->items[at + 1], &maps->items[at], (maps->n - at) * sizeof(taken));
	maps->items[at] = taken;
	maps->n++;
	return true;
}

/*
 * Not right beside the module: a pun before a plain jump uses bytes of that jump's distance, and leads back into the
 * module when those are near 0 or -1. From MIDDLE below, their third byte is near 0x40.
 */
static uint64_t find_hole(const struct kymo_maps *maps, uint64_t low, uint64_t high, uint64_t size)
{
	uint64_t wanted = kymo_page_down(low - MIDDLE - size), above = LOWEST;

	for (size_t i = 0; low > MIDDLE + size + LOWEST && i <= maps->n; i++) {
		uint64_t end = i < maps->n ? maps->items[i].start : UINT64_MAX;

		if (wanted >= above && wanted + size <= end)
			return wanted;
		if (i < maps->n)
			above = maps->items[i].end + (!strcmp(maps->items[i].path, "[heap]") ? KEEP_CLEAR : 0);
	}
	return kymo_maps_hole(maps, low, high, size);
}

/* Of `size` bytes at the most, near these modules, with room for `room` bytes of code to begin with. */
static struct kymo_error *open_region(struct planning *planning, const struct probe_module *from,
				      const struct probe_module *to, uint64_t size, uint64_t room)
{
	struct kymo_probes *probes = planning->probes;
	struct probe_region region = { .size = size, .at = probes->shared.pads_used };
	uint64_t guest_size = guest_size_of(probes);

	if (region.size > KYMO_WINDOW_SIZE - probes->shared.pads_used)
		region.size = kymo_page_down(KYMO_WINDOW_SIZE - probes->shared.pads_used);
	region.cap = kymo_page_up(guest_size) + KYMO_PAGE_SIZE + kymo_page_up(room);
	if (region.size < region.cap && probes->wanted.options.clones) /* which may take less */
		region.cap = region.size;
	if (region.size < region.cap)
		return kymo_error_create(KYMO_ERROR_FAILED, "the pads of all probes would need more than %u MiB",
					 (unsigned int)(KYMO_WINDOW_SIZE >> 20));
	region.address = find_hole(&planning->maps, from->low, to->high, region.size);
	/* Clones may take less than they are given. Trampolines of the probes beside them are all around. */
	while (!region.address && probes->beside && region.size > region.cap) {
		region.size = region.size / 2 > region.cap ? kymo_page_down(region.size / 2) : region.cap;
		region.address = find_hole(&planning->maps, from->low, to->high, region.size);
	}
	if (!region.address)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "there is no hole of %" PRIu64 " KiB within 2 GiB of %s for its pads",
					 region.size >> 10, from->path);
	region.live = region.address + kymo_page_up(guest_size);
	region.n_bytes = kymo_page_up(guest_size) + KYMO_PAGE_SIZE;
	region.bytes = malloc(region.cap);
	if (!region.bytes || !kymo_vec_push(&planning->layout->regions, region)) {
		free(region.bytes);
		return &kymo_error_no_memory;
	}
	memset(region.bytes, KYMO_TRAP_BYTE, region.cap);
	planning->region = &planning->layout->regions.items[planning->layout->regions.n - 1];
	if (!probes_occupy(&planning->maps, region.address, region.size) || !find_room(planning, &region))
		return &kymo_error_no_memory;
	fill_env(probes, planning->region, &planning->env);
	write_guest(probes, &planning->env, planning->region->bytes);
	return NULL;
}

struct kymo_error *probes_open_region(struct planning *planning, size_t first, size_t end)
{
	const struct kymo_probes *probes = planning->probes;

	return open_region(planning, &probes->modules.items[probes->sites.items[first].module],
			   &probes->modules.items[probes->sites.items[end - 1].module], room_for(probes, first, end),
			   KYMO_PAGE_SIZE);
}

struct kymo_error *probes_open_region_of(struct planning *planning, const struct probe_module *module, uint64_t size,
					 uint64_t room)
{
	const uint64_t before = kymo_page_up(guest_size_of(planning->probes)) + KYMO_PAGE_SIZE;

	return open_region(planning, module, module, before + kymo_page_up(size), room);
}

void probes_close_region(struct planning *planning)
{
	struct probe_region *region = planning->region;

	region->size = kymo_page_up(region->n_bytes);
	if (region->size < region->live + 2 * KYMO_PAGE_SIZE - region->address)
		region->size = region->live + 2 * KYMO_PAGE_SIZE - region->address;
	planning->probes->shared.pads_used += region->size;
}
