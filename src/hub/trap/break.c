/* The bytes of breakpoints in a memory. */
#include "arch/trap.h"
#include "base/search.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "procfs/memory.h"

bool hub_space_swap(const struct hub_memory *memory, uint64_t address, uint8_t from, uint8_t to)
{
	uint8_t now;

	return !kymo_memory_read(&memory->opened, address, &now, 1) && now == from &&
	       (from == to || !kymo_memory_write(&memory->opened, address, &to, 1));
}

void hub_space_lift(struct hub_space *space, const struct hub_break *b)
{
	hub_space_swap(space->memory, b->address, KYMO_TRAP_BYTE, b->original);
}

void hub_space_lower(struct hub_space *space, const struct hub_break *b)
{
	if (!b->is_in_jump)
		hub_space_swap(space->memory, b->address, b->original, KYMO_TRAP_BYTE);
}

bool hub_space_has_trap(const struct hub_space *space, uint64_t address)
{
	return hub_space_swap(space->memory, address, KYMO_TRAP_BYTE, KYMO_TRAP_BYTE);
}

/* The first one that is not below the address. */
size_t hub_space_place_of(const struct hub_space *space, uint64_t address)
{
	return kymo_partition_point(i, space->breaks.n, space->breaks.items[i].address < address);
}

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address)
{
	size_t i = hub_space_place_of(space, address);

	return i < space->breaks.n && space->breaks.items[i].address == address ? &space->breaks.items[i] : NULL;
}
