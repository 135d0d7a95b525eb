/*
 * The thread that writes the trace. Private to the library; x86-64 only.
 */
#ifndef KYMO_LIB_RECORD_WRITER_H
#define KYMO_LIB_RECORD_WRITER_H

#include <pthread.h>

#include "record_events.h"
#include "record_rings.h"
#include "trace/clock.h"

/* The trace while it is being written. All but `news` is the writer's from kymo_record_writer_start() until it is
 * joined. */
struct self_recording {
	struct record_memory memory;
	struct kymo_trace output;
	struct kymo_clock_sample begin;
	struct record_news *news; /* exchanged: the latest is the first */
	pthread_t thread;
	uint64_t buffer_size;
	uint64_t next_flush_ns, next_look_ns;
	size_t n_threads;                   /* that the metadata on the disk know */
	bool has_metadata, has_rough_clock; /* on the disk */
	unsigned long lost;
	struct kymo_error *error;      /* the first one: nothing is written from then on */
	struct self_recording *before; /* in a forked child: another one that a parent left */
};

/* Begin the trace in a directory that is there. Errors of pthread_create(). */
int kymo_record_writer_start(struct self_recording *recording);

/* Tell the writer to finish; it is not waited for. From any thread. */
void kymo_record_writer_end(struct record_rings *rings);

/* Wait until the trace is complete. */
void kymo_record_writer_wait(struct record_rings *rings);

#endif
