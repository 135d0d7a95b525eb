/* What is written where there are breakpoints: by engines, and by recorders. */
#include "hub/trap/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/plan.h"
#include "arch/trap.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/keeper.h"
#include "hub/trap/pad.h"
#include "hub/trap/put.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"
#include "wire/shared.h"

bool hub_is_in_jump(const struct hub_space *space, const struct kymo_maps *maps, uint64_t address)
{
	uint8_t bytes[2 * KYMO_JUMP_SIZE];

	for (uint64_t back = 1; back < KYMO_JUMP_SIZE; back++) {
		const struct kymo_map *map;

		if (hub_space_read(space, address - back, bytes,
				   KYMO_JUMP_SIZE)) /* there may be a breakpoint on the jump itself */
			continue;
		map = kymo_maps_at(maps, kymo_jump_target(address - back, bytes));
		if (map && kymo_wire_is_own_path(map->path))
			return true;
	}
	return false;
}

/* Exchange what is below breakpoints with what is in `data`, which then has what is to be in memory. */
static void exchange(struct kymo_hub *hub, struct hub_space *space, uint64_t address, uint8_t *data, size_t size,
		     uint8_t *kept)
{
	for (struct hub_break *b = hub_space_first_from(space, address); hub_space_is_within(space, b, address, size);
	     b++) {
		uint64_t at = b->address - address;

		if (!b->owners || b->by_pad || !hub_break_is_inserted(space, b))
			continue;
		kept[at] = b->original;
		b->original = data[at];
		hub_note_change(hub, b->entry, b->original);
		data[at] = space->is_disarmed || b->is_in_jump ? b->original : KYMO_TRAP_BYTE;
	}
}

/* A breakpoint instruction that an engine writes where a breakpoint was is not a copy of that one. */
static void note_written(struct hub_space *space, uint64_t address, const uint8_t *data, size_t size)
{
	for (struct hub_break *b = hub_space_first_from(space, address); hub_space_is_within(space, b, address, size);
	     b++)
		if (!b->owners)
			b->original = data[b->address - address];
}

/* A pad has a copy of the instruction that its jump has replaced. */
static bool has_pad(const struct hub_space *space, uint64_t address, size_t size)
{
	for (size_t i = 0; i < space->pads.n; i++)
		if (!space->pads.items[i].is_leaving && hub_pad_has(&space->pads.items[i], address, size) &&
		    hub_pad_is_there(space, &space->pads.items[i]))
			return true;
	return false;
}

static int write_below(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size,
		       bool is_engines)
{
	kymo_cleanup_free uint8_t *bytes = malloc(size + 1), *kept = malloc(size + 1);
	int err;

	if (!bytes || !kept)
		return -ENOMEM;
	if (is_engines && has_pad(space, address, size))
		return -EBUSY;
	memcpy(bytes, data, size);
	exchange(hub, space, address, bytes, size, kept);
	err = kymo_memory_write(&space->memory->opened, address, bytes, size);
	if (err)
		exchange(hub, space, address, kept, size, bytes);
	else if (is_engines)
		note_written(space, address, data, size);
	return err;
}

int hub_space_write(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size)
{
	return write_below(hub, space, address, data, size, true);
}

/* A recorder joins a site, or takes its jump out: from now on breakpoints there are above what it writes. */
static int give_way(struct kymo_hub *hub, struct hub_space *space, uint64_t address, size_t size)
{
	int err = 0;

	for (size_t i = 0; i < space->pads.n && !err; i++) {
		struct hub_break *b = hub_pad_has(&space->pads.items[i], address, size)
					      ? hub_space_find(space, space->pads.items[i].site)
					      : NULL;

		err = b ? hub_put_by(hub, space, b, false) : 0;
	}
	return err;
}

/* Those that were removed are known for a while, and nothing of them is in the text. */
static bool has_breakpoints(const struct hub_space *space, uint64_t address, size_t size)
{
	for (const struct hub_break *b = hub_space_first_from(space, address);
	     hub_space_is_within(space, b, address, size); b++)
		if (b->owners)
			return true;
	return false;
}

/* A breakpoint within a jump would be a part of where it leads. */
static void look_for_jumps(struct hub_space *space, const struct kymo_maps *maps, uint64_t address, size_t size)
{
	for (struct hub_break *b = hub_space_first_from(space, address); hub_space_is_within(space, b, address, size);
	     b++) {
		bool is = b->owners && hub_is_in_jump(space, maps, b->address);

		if (is && !space->is_disarmed)
			hub_space_lift(space, b, NULL);
		if (is == b->is_in_jump)
			continue;
		b->is_in_jump = is;
		if (b->owners && !space->is_disarmed)
			hub_space_lower(space, b);
	}
}

int hub_space_write_text(struct kymo_hub *hub, const struct hub_process *process, uint64_t address, const void *data,
			 size_t size)
{
	struct hub_space *space = process->space;
	struct kymo_maps maps = { 0 };
	struct kymo_error *error;
	int err = give_way(hub, space, address, size);

	if (err)
		return err;
	if (!has_breakpoints(space, address, size))
		return write_below(hub, space, address, data, size, false);
	if (!space->is_disarmed)
		return -EBUSY; /* a running thread would find a breakpoint in the middle of a jump */
	error = kymo_maps_read(kymo_live_thread(process->pid), &maps);
	err = error ? -ESRCH : write_below(hub, space, address, data, size, false);
	if (!err)
		look_for_jumps(space, &maps, address, size);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return err;
}
