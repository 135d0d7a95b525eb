/* The trace directory while it is being written. */
#ifndef KYMO_TRACE_TRACE_H
#define KYMO_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "ring/ring.h"
#include "trace/kept.h"

struct kymo_ctf_stream;

/*
 * A stream file. Rings have it one after another: when a process has ended, another's ring of the same place and CPU
 * whose packets begin later may go on with it. Running numbers go on, too: what a ring counts from 0 is added to the
 * bases.
 */
struct kymo_trace_stream {
	struct kymo_ctf_stream *ctf; /* NULL where packets are kept */
	size_t ring;
	size_t number; /* of those of the ring, from 0 */
	uint32_t cpu;
	bool is_taken;
	uint64_t first_sequence, first_lost; /* bases */
	uint64_t sequence, lost, last_tsc;   /* of the last packet */
};

/* Where the packets of a ring go. */
struct kymo_trace_position {
	size_t ring;      /* which one of its process it is: names the file */
	size_t stream;    /* number, from 1; 0, as at first: none */
	uint64_t skipped; /* packets of the ring that were not written, as nothing was left of them */
};

#define KYMO_TRACE_VFORKS SIZE_MAX     /* in place of a ring: losses in vfork children, which belong to no CPU */
#define KYMO_TRACE_ROWS (SIZE_MAX - 1) /* likewise: rows of aggregations */
#define KYMO_TRACE_FRAMES (SIZE_MAX - 2)
#define KYMO_TRACE_CALLS (SIZE_MAX - 3) /* records that waited for the duration of their calls */

struct kymo_trace {
	int dirfd;
	char *path; /* as the user has written it; the lock of the directory keeps it where it is */
	struct kymo_ctf_trace trace;
	KYMO_VEC(struct kymo_trace_stream) streams;
	uint64_t bytes;  /* of records */
	uint64_t events; /* about, where `is_estimate`: packets of a long recording are not walked through (trace.c) */
	bool is_estimate;
	uint64_t n_walked;  /* records that were, to count them */
	uint32_t only_size; /* of each record of each event; 0: they differ */
	uint32_t *by_id;    /* place in the trace's events + 1, by event id; 0: no such event */
	size_t n_ids;
	struct kymo_trace_position vforks;
	struct kymo_kept *kept;                 /* where packets go in place of the files; or NULL */
	uint64_t dropped_bytes, dropped_events; /* by it; not in `bytes` and `events` any more */
};

/* The event of that id, or NULL. */
static inline const struct kymo_ctf_event *kymo_trace_event(const struct kymo_trace *output, uint32_t id)
{
	return id < output->n_ids && output->by_id[id] ? &output->trace.events[output->by_id[id] - 1] : NULL;
}

/*
 * Begin a trace in a directory that kymo_directory_make() makes.
 */
struct kymo_error *kymo_trace_init(const char *path, struct kymo_trace *ret);
void kymo_trace_deinit(struct kymo_trace *output);

/*
 * Keep the newest packets, up to `size` bytes, in memory in place of the files. To be called before the first packet.
 * NO_MEMORY.
 */
struct kymo_error *kymo_trace_keep(struct kymo_trace *output, uint64_t size);

/* Write what is kept to the directory of `to`, as streams of its trace, and keep it. No stream may be there yet.
 * `bytes_ret`: of records. */
struct kymo_error *kymo_trace_write_kept(const struct kymo_trace *output, const struct kymo_trace *to,
					 uint64_t *bytes_ret);

/* Begin a trace anew in the same directory, which has metadata in it but no streams. */
void kymo_trace_restart(struct kymo_trace *output);

/* There are new events in the trace; for the count of events. */
struct kymo_error *kymo_trace_index_events(struct kymo_trace *output);

/* Write all complete packets of a ring; `n_ret` is how many. The stream is made, or taken up, with the first. */
struct kymo_error *kymo_trace_drain(struct kymo_trace *output, struct kymo_trace_position *position,
				    struct kymo_ring *ring, uint32_t cpu, size_t *n_ret);

/* Write one packet; whether its records are events that are counted. Packets come in the order of their sequence. */
struct kymo_error *kymo_trace_append(struct kymo_trace *output, struct kymo_trace_position *position, uint32_t cpu,
				     const struct kymo_ring_packet *packet, bool is_counted);

/* Write the packets of a ring that is being overwritten, and leave them there; `room` is for one. */
struct kymo_error *kymo_trace_copy(struct kymo_trace *output, struct kymo_trace_position *position,
				   const struct kymo_ring *ring, uint32_t cpu, uint8_t *room);

/* After the last packet: losses that came after it get a packet of their own, without records. The stream is free then,
 * also on an error. */
struct kymo_error *kymo_trace_finish(struct kymo_trace *output, struct kymo_trace_position *position,
				     const struct kymo_ring *ring, uint32_t cpu, uint64_t tsc);

/* After the last packet of what is no ring: the stream is free. */
void kymo_trace_leave(struct kymo_trace *output, struct kymo_trace_position *position);

/*
 * Hits of vfork children, of which `lost` is the running total: a packet without records tells readers how many more
 * there are than the last time. They were lost after the last time (the first time: after the stamp `since`) and up
 * to `tsc`. Nothing happens where there are no more.
 */
struct kymo_error *kymo_trace_vforks(struct kymo_trace *output, uint64_t lost, uint64_t since, uint64_t tsc);

/* (Re)write the metadata. */
struct kymo_error *kymo_trace_metadata(struct kymo_trace *output);

#endif
