/*
 * Branches that the processor has recorded: from the bytes of a buffer that the kernel has filled (perf_event_open(2))
 * to branches, the oldest first. The bytes are not trusted. Private to the room.
 *
 * Pure, but for what `read` does and that Intel PT is decoded by libipt, which is loaded when it is first needed. No
 * buffer that this was written for has come from a processor: there was none that has them. docs/internals/branches.md
 * tells what stands in for it.
 */
#ifndef KYMO_BRANCH_RAW_H
#define KYMO_BRANCH_RAW_H

#include <stddef.h>
#include <stdint.h>

#include "branch/blocks.h"

struct branch_raw {
	const uint8_t *bytes; /* the oldest one first */
	size_t size;
	/* Up to `size` bytes of the thread's code at `address`. How many: 0 if there is none. */
	size_t (*read)(uint64_t address, uint8_t *bytes, size_t size, void *data);
	/* `is_gap`: the thread has taken others before that, which were lost or can't be decoded. Such a branch has the
	 * kind ENTER. */
	branch_is_taken *is_taken;
	void *data;
};

#endif
