/* The text of a memory with breakpoints. */
#ifndef KYMO_HUB_TRAP_TEXT_H
#define KYMO_HUB_TRAP_TEXT_H

#include "kymo/engine.h"

struct hub_process;
struct hub_space;
struct kymo_maps;

/* Whether the address is within a jump that leads to kymo's code, after its first byte. */
bool hub_is_in_jump(const struct hub_space *space, const struct kymo_maps *maps, uint64_t address);

/* What engines write. -EBUSY: the jump of a pad is there. */
int hub_space_write(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size);

/* What a recorder writes, which may be jumps over breakpoints, or what was there before. The process has a space.
 * -EBUSY: a thread runs where there are breakpoints. */
int hub_space_write_text(struct kymo_hub *hub, const struct hub_process *process, uint64_t address, const void *data,
			 size_t size);

#endif
