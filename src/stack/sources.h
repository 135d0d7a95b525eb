/* What debug information says of the code of stacks. The room's front door includes it. */
#ifndef KYMO_STACK_SOURCES_H
#define KYMO_STACK_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "sym/debug_frames.h"

struct kymo_stacks;

/* From now on keep open what has debug information: the sources of stacks will be wanted. */
void kymo_stacks_need_sources(struct kymo_stacks *stacks);

/*
 * The functions and lines at an address of a file, as kymo_debug_frames() has them, by the `file_number` of a frame.
 * The strings live as long as `stacks`. The first call for a file reads its debug information, which may take seconds.
 */
size_t kymo_stacks_sources(struct kymo_stacks *stacks, uint32_t file_number, uint64_t address,
			   struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX]);

#endif
