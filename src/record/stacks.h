/*
 * Stacks of a recording (docs/internals/stacks.md): pads write a copy of the stack into their records; the recorder
 * unwinds it, and writes the number of its innermost frame in its place. Private to the room.
 */
#ifndef KYMO_RECORD_STACKS_H
#define KYMO_RECORD_STACKS_H

#include "record/recording.h"

/* How far frames are written, and where. */
struct stacks_written {
	size_t n;
	struct kymo_trace_position position;
	uint64_t n_packets;
};

/* Make the event of frames, if a spec has stacks. To be called before the specs are divided. */
struct kymo_error *stacks_begin(struct recording *recording);
void stacks_end(struct recording *recording);

/* Note what the process of a source has mapped: when it may have changed, and before it may end. */
void stacks_note(struct recording *recording, struct record_source *source);

/* The same of some sources, of the next ones the next time: if records are not read meanwhile. */
void stacks_note_some(struct recording *recording);

/* Replace the copies in a packet, which is this process's own, by numbers, and write frames that are new. */
struct kymo_error *stacks_replace(struct recording *recording, struct record_source *source, uint8_t *records,
				  struct kymo_ring_packet *packet);

/* As kymo_trace_drain() of ring `i`, with stacks. */
struct kymo_error *stacks_drain(struct recording *recording, struct record_source *source, size_t i, size_t *n_ret);

/* As kymo_trace_copy() of ring `i`, with stacks: of a snapshot, whose output is the recording's meanwhile. */
struct kymo_error *stacks_copy(struct recording *recording, struct record_source *source, size_t i,
			       struct kymo_trace_position *position, uint8_t *room);

/* Packets that are kept in memory make room for others. Forget the frames that only those named. */
void stacks_prune(struct recording *recording);

/* Write the frames that are not written yet: of packets that were kept in memory, when they are written. */
struct kymo_error *stacks_write(struct recording *recording);

/* Write what debug information says of the frames that are written: when all are. No file is begun after `reading_ns`
 * of this thread's time. */
struct kymo_error *stacks_write_sources(struct recording *recording, uint64_t reading_ns);

/* A snapshot has all frames, in files of its own. What is given back is for stacks_end_snapshot(). */
struct stacks_written stacks_begin_snapshot(struct recording *recording);
void stacks_end_snapshot(struct recording *recording, struct stacks_written before);

/* Its frames, as they are so far, or NULL: it has none. */
const struct kymo_frame_tree *stacks_frames(const struct recording *recording);

/* Tell the user what is missing. */
void stacks_tell(struct recording *recording);

/* The source is about to be freed. */
void stacks_forget(struct recording *recording, const struct record_source *source);

#endif
