/* The bytes of breakpoints in a memory. */
#include <string.h>

#include "arch/trap.h"
#include "base/search.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
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

bool hub_space_lift(struct hub_space *space, struct hub_break *b, struct hub_mappings *mappings)
{
	b->is_void |= mappings && !hub_break_is_there(space->memory, b, mappings);
	return !b->is_void && hub_space_swap(space->memory, b->address, KYMO_TRAP_BYTE, b->original);
}

void hub_space_lower(struct hub_space *space, const struct hub_break *b)
{
	if (!b->is_in_jump && !b->is_void)
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
