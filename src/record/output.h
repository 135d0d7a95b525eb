/* The trace directory while it is being written. Private to the room. */
#ifndef KYMO_RECORD_OUTPUT_H
#define KYMO_RECORD_OUTPUT_H

#include "base/error.h"
#include "ctf/ctf.h"
#include "ctf/stream.h"
#include "ring/ring.h"

struct output {
	int dirfd;
	char *path;			/* absolute */
	struct kymo_ctf_trace trace;
	struct kymo_ctf_stream **streams;	/* per ring, made with its first packet */
	uint64_t *sequences, *written_lost, *last_tsc;
	size_t n_streams;
	uint64_t bytes;			/* of records */
	uint64_t events;		/* about: packets are not walked through (see output.c) */
	uint32_t *sizes;		/* of a record, by event id */
	size_t n_sizes;
};

/*
 * Make the directory; an earlier recording there moves to PATH.old, and one that is there is removed. Anything that is not a recording of kymo's is
 * left alone: FAILED, with a sentence.
 */
struct kymo_error *output_init(const char *path, struct output *ret);
void output_deinit(struct output *output);

/* Whether output_init() would find something in the way, or no right to make the directory. Changes nothing. */
struct kymo_error *output_check(const char *path);

/* Make room for the streams of `n` rings. */
struct kymo_error *output_rings(struct output *output, size_t n);

/* Tell the sizes of records of events that are new in the trace; for the count of events. */
struct kymo_error *output_sizes(struct output *output);

/* Write all complete packets of ring `i`; `n_ret` is how many. */
struct kymo_error *output_drain(struct output *output, size_t i, struct kymo_ring *ring, uint32_t cpu, size_t *n_ret);

/* After the last packet: losses that came behind it get a packet of their own, without records. */
struct kymo_error *output_finish(struct output *output, size_t i, const struct kymo_ring *ring, uint32_t cpu, uint64_t tsc);

/* (Re)write the metadata. */
struct kymo_error *output_metadata(struct output *output);

#endif
