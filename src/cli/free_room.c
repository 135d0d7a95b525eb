
#include "cli/free_room.h"

#include "base/page.h"
#include "sym/module.h"
#include "sym/sym.h"

#define FIRST_ADDRESS 0x10000 /* Linux maps nothing lower unless it is told to (vm.mmap_min_addr) */

static void look_at_bytes(void *data, uint64_t vaddr, uint8_t *bytes, size_t size)
{
}

static bool never(void *data, uint64_t vaddr, size_t size)
{
	return false;
}

/* Where `size` bytes at `at` may begin instead: after what they would lie on. `at` itself when they lie on nothing. */
static int64_t behind(const struct cli_free_room *room, int64_t at, int64_t size)
{
	if (at < room->lowest)
		return room->lowest;
	if (at < room->high && at + size > room->low)
		return room->high;
	for (size_t i = 0; i < KYMO_PLANS_MAX; i++) {
		int64_t taken = (int64_t)room->taken[i];

		if (taken && at < taken + size && at + size > taken)
			return taken + size;
	}
	return at ? at : 1;
}

/* Addresses are signed: a module that can move has free ones below its own 0. */
static uint64_t reserve_address(void *data, uint64_t low, uint64_t high, size_t size)
{
	struct cli_free_room *room = data;
	int64_t at = (int64_t)low, next;

	/* Only a damaged file has code there. */
	if (at < INT64_MIN + (int64_t)KYMO_PAGE_SIZE || (int64_t)high > INT64_MAX - (int64_t)KYMO_PAGE_SIZE)
		return 0;
	for (; at <= (int64_t)high; at = next) {
		next = behind(room, at, (int64_t)size);
		if (next != at)
			continue;
		for (size_t i = 0; i < KYMO_PLANS_MAX; i++) {
			if (!room->taken[i])
				return room->taken[i] = (uint64_t)at;
		}
		return 0;
	}
	return 0;
}

static void release(void *data, uint64_t vaddr, size_t size)
{
	struct cli_free_room *room = data;

	for (size_t i = 0; i < KYMO_PLANS_MAX; i++) {
		if (room->taken[i] == vaddr)
			room->taken[i] = 0;
	}
}

void cli_free_room_init_at(struct cli_free_room *room, uint64_t low, uint64_t high)
{
	*room = (struct cli_free_room){
		.ops = { .data = room,
			 .look = look_at_bytes,
			 .is_locked = never,
			 .is_unsteady = never,
			 .reserve = reserve_address,
			 .release = release },
		.low = (int64_t)low,
		.high = (int64_t)high,
		.lowest = FIRST_ADDRESS,
	};
}

void cli_free_room_init(struct cli_free_room *room, const struct kymo_module *module)
{
	size_t n;
	const struct kymo_segment *segments = kymo_module_segments(module, &n);

	*room = (struct cli_free_room){
		.ops = { .data = room,
			 .look = look_at_bytes,
			 .is_locked = never,
			 .is_unsteady = never,
			 .reserve = reserve_address,
			 .release = release,
			 .shares_entries = true },
		.low = INT64_MAX,
		.lowest = kymo_module_is_pie(module) ? INT64_MIN : FIRST_ADDRESS,
	};
	for (size_t i = 0; i < n; i++) {
		int64_t low = (int64_t)segments[i].vaddr;
		int64_t high = (int64_t)(segments[i].vaddr + segments[i].memory_size);

		if (low >= 0 && low < room->low)
			room->low = (int64_t)kymo_page_down(segments[i].vaddr);
		if (high > room->high && high < INT64_MAX - (int64_t)KYMO_PAGE_SIZE)
			room->high = (int64_t)kymo_page_up((uint64_t)high);
	}
}
