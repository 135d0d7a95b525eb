/* Private to the room. */
#ifndef KYMO_PROBE_LEAVE_H
#define KYMO_PROBE_LEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_detach_result;
struct kymo_maps;
struct kymo_process;
struct kymo_remains;
struct kymo_remains_list;

/*
 * Take recording `own`, one of `all`, out of the text of the stopped process; may be repeated. UNSAFE when a place
 * holds foreign bytes: that one is left, all others are restored. `stays_ret`: its memory must stay for now: a thread
 * is in the middle of a vfork (not if `must_go`), or another process relies on it.
 */
struct kymo_error *probe_leave_text(struct kymo_process *process, const struct kymo_maps *maps,
				    const struct kymo_remains *own, const struct kymo_remains_list *all, bool must_go,
				    bool *stays_ret, struct kymo_detach_result *result);

/* Where the jmp rel32 at `address` leads; 0 if there is none. */
uint64_t probe_jump_at(struct kymo_process *process, uint64_t address);

/*
 * Whether the text at `address`, of which `patch_size` bytes were changed, has a jump to `link`; also if they are the
 * same. A pun's is made of bytes that follow, and begins behind prefixes; that of an evicted neighbour is where a short
 * jump leads.
 */
bool probe_leads_to_link(struct kymo_process *process, uint64_t address, size_t patch_size, uint64_t link);

#endif
