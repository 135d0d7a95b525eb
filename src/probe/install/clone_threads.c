#include "probe/install/clone_threads.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arch/clone.h"
#include "arch/clone_stand.h"
#include "arch/pad.h"
#include "arch/selectors.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "base/search.h"
#include "base/vec.h"
#include "probe/install/frames.h"
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

	if (point->pushed) {
		if (kymo_process_read(process, registers.rsp, &pushed, sizeof(pushed)))
			return;
		*kymo_clone_register(&registers, point->pushed - 1u) = pushed;
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

struct clone_ranges {
	KYMO_VEC(struct read_clones) items; /* heads alone */
	uint64_t low, size;                 /* all of them lie there */
};

static bool add_range(struct clone_ranges *ranges, const struct read_clones *clones)
{
	const uint64_t end = clones->address + clones->head.size, old_end = ranges->low + ranges->size;
	const bool is_first = !ranges->items.n;

	ranges->low = is_first || clones->address < ranges->low ? clones->address : ranges->low;
	ranges->size = (is_first || end > old_end ? end : old_end) - ranges->low;
	return kymo_vec_push(&ranges->items, *clones);
}

/* A gate's call leaves where it has returned to in the stack, also of a thread that has ended. A thread that is in what
 * is called has its program counter there, too. */
static bool is_after_gate(struct kymo_process *process, const struct read_clones *clones, uint64_t address)
{
	uint8_t bytes[KYMO_CLONE_GATE_CALL];

	return !kymo_process_read(process, address - sizeof(bytes), bytes, sizeof(bytes)) &&
	       kymo_clone_is_gate_call(bytes, address, clones->address + sizeof(clones->head));
}

/*
 * Numbers below 4 GiB are common in memory, and clones of a program that is mapped there have such addresses. There a
 * word counts if it is on the stack of a thread, or the kernel has saved it in a frame.
 */
static bool is_address(struct kymo_process *process, const struct read_clones *clones, const uint64_t *word,
		       bool is_on_stack)
{
	return *word - clones->address < clones->head.size && (*word >> 32 || is_on_stack || kymo_may_be_saved(word)) &&
	       !is_after_gate(process, clones, *word);
}

/* `words` has KYMO_SAVED_WORDS - 1 more, for the last one's sake. */
static bool has_address(struct kymo_process *process, const struct clone_ranges *ranges, const uint64_t *words,
			size_t n, bool is_on_stack)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ranges->items.n && words[i] - ranges->low < ranges->size; k++)
			if (is_address(process, &ranges->items.items[k], &words[i], is_on_stack))
				return true;
	return false;
}

static bool is_stack(struct kymo_process *process, uint64_t from, uint64_t to)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n; i++)
		if (threads[i].registers.rsp >= from && threads[i].registers.rsp < to)
			return true;
	return false;
}

static bool may_have_address(struct kymo_process *process, const struct clone_ranges *ranges, uint64_t from,
			     uint64_t to)
{
	const bool is_on_stack = is_stack(process, from, to);
	uint64_t words[CHUNK / 8 + KYMO_SAVED_WORDS - 1];

	while (from < to) {
		const size_t size = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		const size_t ahead = to - from - size < (KYMO_SAVED_WORDS - 1) * sizeof(*words)
					     ? (size_t)(to - from) - size
					     : (KYMO_SAVED_WORDS - 1) * sizeof(*words);

		memset(words, 0, sizeof(words));
		if (kymo_process_read(process, from, words, size + ahead) ||
		    has_address(process, ranges, words, size / 8, is_on_stack))
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
			may_have |= !add_range(&ranges, &clones);
	for (size_t i = 0; ranges.items.n && i < maps->n && !may_have; i++) {
		const struct kymo_map *map = &maps->items[i];
		uint64_t from;

		if (!map->writable || !map->readable || is_ours(i, data))
			continue;
		from = probe_alive_from(process, maps, i);
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

void probe_end_anchors(struct kymo_process *process, const struct kymo_session *session,
		       const struct kymo_session_list *all)
{
	const uint32_t none = 0, upper = (uint32_t)(session->header.arena_address >> 32);

	for (size_t i = 0; upper && i < all->n; i++) {
		const struct kymo_wire_header *header = &all->items[i].header;

		for (uint32_t k = 0; all->items[i].inode != session->inode && k < header->n_regions; k++) {
			const uint64_t at = header->regions[k].live + KYMO_PAD_LIVE_ARENA;
			uint32_t word;

			if (header->regions[k].live && !kymo_process_read(process, at, &word, sizeof(word)) &&
			    word == upper)
				kymo_process_write(process, at, &none, sizeof(none));
		}
	}
}
