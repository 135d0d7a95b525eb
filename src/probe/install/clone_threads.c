#include "probe/install/clone_threads.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "base/search.h"
#include "base/vec.h"
#include "probe/memory/sessions.h"
#include "probe/plan/clone_sites.h"
#include "proc/memory.h"
#include "proc/thread.h"
#include "procfs/maps.h"
#include "wire/clones.h"

/* The clones of one region. All is read from the process. */
struct read_clones {
	uint64_t address;
	struct kymo_wire_clones head;
	struct kymo_wire_clone_point *points; /* or NULL: not read yet */
};

static bool read_head(struct kymo_process *process, const struct kymo_wire_region *region, struct read_clones *ret)
{
	uint64_t room;

	*ret = (struct read_clones){ .address = region->live + KYMO_PAGE_SIZE };
	if (!region->live || ret->address - region->address >= region->size ||
	    kymo_process_read(process, ret->address, &ret->head, sizeof(ret->head)))
		return false;
	room = region->address + region->size - ret->address;
	return ret->head.magic == KYMO_WIRE_CLONES_MAGIC && ret->head.size <= room &&
	       ret->head.n_points <= (room - ret->head.size) / sizeof(*ret->points);
}

static bool read_points(struct kymo_process *process, struct read_clones *clones)
{
	const size_t n = clones->head.n_points;

	if (clones->points)
		return true;
	clones->points = calloc(n ? n : 1, sizeof(*clones->points));
	return clones->points && !kymo_process_read(process, clones->address + clones->head.size, clones->points,
						    n * sizeof(*clones->points));
}

static void go_on_at(struct kymo_process *process, size_t index, const struct user_regs_struct *now,
		     const struct kymo_wire_clone_point *point)
{
	struct user_regs_struct registers = *now;
	uint64_t pushed;

	if (point->has_pushed_ax) {
		if (kymo_process_read(process, registers.rsp, &pushed, sizeof(pushed)))
			return;
		registers.rax = pushed;
	}
	registers.rsp += point->lowered;
	registers.rip = point->address;
	kymo_thread_set_registers(process, index, &registers);
}

static void send_home(struct kymo_process *process, size_t index, const struct user_regs_struct *registers,
		      struct read_clones *clones)
{
	const uint64_t at = registers->rip - clones->address;
	size_t i;

	if (at >= clones->head.size || !read_points(process, clones))
		return;
	i = kymo_partition_point(k, clones->head.n_points, clones->points[k].at < at);
	if (i < clones->head.n_points && clones->points[i].at == at)
		go_on_at(process, index, registers, &clones->points[i]);
}

void probe_send_clones_home(struct kymo_process *process, const struct kymo_session *session)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (uint32_t i = 0; session->header.arena_address && i < session->header.n_regions; i++) {
		struct read_clones clones;

		if (!read_head(process, &session->header.regions[i], &clones))
			continue;
		for (size_t k = 0; k < n; k++)
			send_home(process, k, &threads[k].registers, &clones);
		free(clones.points);
	}
}

/* ---- contexts --------------------------------------------------------------------------------- */

#define SCAN_MAX (UINT64_C(1) << 30)
#define CHUNK 65536u /* bytes that are read at once */
#define RED_ZONE 128u

struct clone_ranges {
	KYMO_VEC(struct read_clones) items; /* heads alone */
};

static bool has_address(const struct clone_ranges *ranges, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ranges->items.n; k++)
			if (words[i] - ranges->items.items[k].address < ranges->items.items[k].head.size)
				return true;
	return false;
}

/* Where what is alive begins: nothing below the stack pointer of the initial thread's stack is, if one stands there. */
static uint64_t begin_of(struct kymo_process *process, const struct kymo_map *map)
{
	const struct kymo_thread *threads;
	uint64_t low = map->end;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n; i++)
		if (threads[i].registers.rsp >= map->start && threads[i].registers.rsp < low)
			low = threads[i].registers.rsp;
	if (strcmp(map->path, "[stack]") != 0 || low == map->end || low - map->start < RED_ZONE)
		return map->start;
	return (low - RED_ZONE) & ~(uint64_t)7;
}

static bool may_have_address(struct kymo_process *process, const struct clone_ranges *ranges, uint64_t from,
			     uint64_t to)
{
	uint64_t words[CHUNK / 8];

	while (from < to) {
		const size_t size = to - from < sizeof(words) ? (size_t)(to - from) : sizeof(words);

		if (kymo_process_read(process, from, words, size) || has_address(ranges, words, size / 8))
			return true;
		from += size;
	}
	return false;
}

bool probe_clones_are_saved(struct kymo_process *process, const struct kymo_session *session,
			    const struct kymo_maps *maps, bool (*is_ours)(size_t i, void *data), void *data)
{
	struct clone_ranges ranges = { .items = { 0 } };
	struct read_clones clones;
	uint64_t left = SCAN_MAX;
	bool may_have = false;

	for (uint32_t i = 0; session->header.arena_address && i < session->header.n_regions; i++)
		if (read_head(process, &session->header.regions[i], &clones))
			may_have |= !kymo_vec_push(&ranges.items, clones);
	for (size_t i = 0; ranges.items.n && i < maps->n && !may_have; i++) {
		const struct kymo_map *map = &maps->items[i];
		uint64_t from;

		if (!map->writable || !map->readable || is_ours(i, data))
			continue;
		from = begin_of(process, map);
		may_have = map->end - from > left || may_have_address(process, &ranges, from, map->end);
		left -= may_have ? 0 : map->end - from;
	}
	kymo_vec_deinit(&ranges.items);
	return may_have;
}

void probe_clear_clone_words(struct kymo_process *process, const struct kymo_session *session)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; session->arena && i < n; i++) {
		const uint64_t at = threads[i].registers.fs_base + PROBE_CLONES_WORD;
		uint64_t word;

		if (threads[i].registers.fs_base && !kymo_process_read(process, at, &word, sizeof(word)) &&
		    word - session->arena < KYMO_WIRE_ARENA_SIZE)
			kymo_process_write(process, at, &(uint64_t){ 0 }, sizeof(word));
	}
}
