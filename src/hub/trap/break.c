/* The bytes of breakpoints in a memory. */
#include <string.h>

#include "arch/trap.h"
#include "base/search.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/pad.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define EQUAL_MIN 4 /* bytes that make a coincidence unlikely */

bool hub_space_swap(const struct hub_memory *memory, uint64_t address, uint8_t from, uint8_t to)
{
	uint8_t now;

	return !kymo_memory_read(&memory->opened, address, &now, 1) && now == from &&
	       (from == to || !kymo_memory_write(&memory->opened, address, &to, 1));
}

void hub_mappings_deinit(struct hub_mappings *mappings)
{
	kymo_maps_deinit(&mappings->maps);
}

struct hub_code hub_code_at(const struct kymo_map *map, uint64_t address)
{
	if (!map->inode)
		return (struct hub_code){ .inode = 0 };
	return (struct hub_code){
		.inode = map->inode,
		.offset = map->offset + (address - map->start),
		.major = map->major,
		.minor = map->minor,
	};
}

/* Other breakpoints may be among the bytes, but a run of that instruction is no code. */
static bool is_followed_by_its_code(const struct hub_memory *memory, const struct hub_break *b)
{
	uint8_t now[HUB_BREAK_NEXT];
	unsigned int n_equal = 0;

	if (b->n_next < EQUAL_MIN || kymo_memory_read(&memory->opened, b->address + 1, now, b->n_next))
		return false;
	for (unsigned int i = 0; i < b->n_next; i++) {
		if (now[i] != b->next[i] && now[i] != KYMO_TRAP_BYTE)
			return false;
		n_equal += now[i] == b->next[i] && now[i] != KYMO_TRAP_BYTE;
	}
	return n_equal >= EQUAL_MIN;
}

static bool has_trap(const struct hub_memory *memory, uint64_t address)
{
	return hub_space_swap(memory, address, KYMO_TRAP_BYTE, KYMO_TRAP_BYTE);
}

bool hub_break_is_written(const struct hub_memory *memory, const struct hub_break *b)
{
	return has_trap(memory, b->address) && is_followed_by_its_code(memory, b);
}

static void read_mappings(struct hub_mappings *mappings)
{
	struct kymo_error *error;

	if (mappings->was_read)
		return;
	error = kymo_maps_read(kymo_live_thread(mappings->pid), &mappings->maps);
	mappings->was_read = true;
	mappings->is_known = !error && mappings->maps.n; /* of one that has ended there are none */
	kymo_error_destroy(error);
}

/* Code that is written to may be no code for the moment. What others have mapped, too, is theirs: their file, even. */
bool hub_break_is_there(const struct hub_memory *memory, const struct hub_break *b, struct hub_mappings *mappings)
{
	const struct kymo_map *map;
	struct hub_code code;

	if (hub_break_is_written(memory, b))
		return true;
	read_mappings(mappings);
	if (!mappings->is_known)
		return true;
	map = kymo_maps_at(&mappings->maps, b->address);
	if (!map || map->shared || !(map->executable || has_trap(memory, b->address)))
		return false;
	code = hub_code_at(map, b->address);
	return !memcmp(&code, &b->code, sizeof(code));
}

static void arm_pad(const struct hub_space *space, const struct hub_break *b, bool is_armed)
{
	const struct hub_pad *pad = hub_pad_at(space, b->address);

	if (pad)
		hub_pad_arm(space, pad, is_armed);
}

/* A jump that is there says that its code is. */
static bool is_pad_there(const struct hub_space *space, const struct hub_break *b)
{
	const struct hub_pad *pad = b->by_pad ? hub_pad_at(space, b->address) : NULL;

	return pad && hub_pad_is_written(space, pad);
}

bool hub_space_lift(struct hub_space *space, struct hub_break *b, struct hub_mappings *mappings)
{
	if (b->by_pad)
		arm_pad(space, b, false);
	b->is_void |= mappings && !is_pad_there(space, b) && !hub_break_is_there(space->memory, b, mappings);
	if (b->by_pad)
		return false;
	return !b->is_void && hub_space_swap(space->memory, b->address, KYMO_TRAP_BYTE, b->original);
}

void hub_space_lower(struct hub_space *space, const struct hub_break *b)
{
	if (b->by_pad && !b->is_void)
		arm_pad(space, b, true);
	else if (!b->is_in_jump && !b->is_void)
		hub_space_swap(space->memory, b->address, b->original, KYMO_TRAP_BYTE);
}

bool hub_space_has_trap(const struct hub_space *space, uint64_t address)
{
	return has_trap(space->memory, address);
}

/* The first one that is not below the address. */
size_t hub_space_index_of(const struct hub_space *space, uint64_t address)
{
	return kymo_partition_point(i, space->breaks.n, space->breaks.items[i].address < address);
}

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address)
{
	size_t i = hub_space_index_of(space, address);

	return i < space->breaks.n && space->breaks.items[i].address == address ? &space->breaks.items[i] : NULL;
}

struct hub_break *hub_space_first_from(const struct hub_space *space, uint64_t address)
{
	return space->breaks.items + hub_space_index_of(space, address);
}

bool hub_space_is_within(const struct hub_space *space, const struct hub_break *b, uint64_t address, size_t size)
{
	return b < space->breaks.items + space->breaks.n && b->address - address < size;
}

bool hub_break_is_inserted(const struct hub_space *space, const struct hub_break *b)
{
	if (b->by_pad)
		return !b->is_void && is_pad_there(space, b);
	return !b->is_void && (space->is_disarmed || b->is_in_jump || hub_space_has_trap(space, b->address));
}

int hub_space_read(const struct hub_space *space, uint64_t address, void *data, size_t size)
{
	int err = kymo_memory_read(&space->memory->opened, address, data, size);

	for (const struct hub_break *b = hub_space_first_from(space, address);
	     !err && hub_space_is_within(space, b, address, size); b++)
		if (b->owners && !b->is_void && !b->by_pad)
			((uint8_t *)data)[b->address - address] = b->original;
	if (!err)
		hub_pads_hide(space, address, data, size);
	return err;
}
