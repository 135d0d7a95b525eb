/*
 * Inlined functions and lines of the frames of a recording's stacks. They are looked up when the recording has ended,
 * or for a snapshot, once for each address: reading debug information takes time, which a recorder has not. Private to
 * the room.
 */
#ifndef KYMO_RECORD_SOURCES_H
#define KYMO_RECORD_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "stack/stack.h"

/* An address of a file, at which a thread was or to which a call returns. */
struct source_place {
	uint64_t address;
	uint32_t origin;
	bool is_named; /* by a frame that is written */
};

/* Zeroed: none yet. */
struct sources {
	uint32_t event; /* id of their records; 0: none are wanted */
	KYMO_VEC(struct source_place) places;
	struct kymo_index index; /* of `places` */
	struct kymo_stacks *stacks;
	uint64_t header; /* of a record */
	uint64_t end_ns; /* of the thread's time: no debug information is read after it */
	size_t next;     /* of `places` */
	uint64_t n_records, n_bytes, n_late, n_without; /* … without: there was no room */
};

/* What frames of one address may differ in, in a number that is not 0, for `place` of struct kymo_frame_node; 0: it has
 * no sources. */
static inline uint32_t sources_origin(const struct kymo_stack_frame *frame)
{
	return frame->file_number && frame->file_number < UINT32_MAX / 2 ? frame->file_number << 1 | frame->is_return
									 : 0;
}

/* The number of a place that a frame which is written names. 0: it has no sources, or there is no room. */
uint32_t sources_place(struct sources *sources, uint32_t origin, uint64_t address);

/* Write to another trace from now on. */
void sources_forget_named(struct sources *sources);

/*
 * The records of all places that are named. To be begun; then each call gives some, in fresh memory, NULL when memory
 * is out. False: that was all.
 */
void sources_begin(struct sources *sources, struct kymo_stacks *stacks, uint64_t tsc, uint64_t reading_ns);
bool sources_next(struct sources *sources, char **bytes_ret, size_t *size_ret);

void sources_deinit(struct sources *sources);

#endif
