/*
 * System calls as the kernel's tracepoints see them, with the memory that they are made with, as a source of events (docs/design/syscalls.md). Private to the room.
 *
 * Its streams are files of their own, one a CPU; its events are those of kymo_events_add_syscalls(), with memory.
 */
#ifndef KYMO_RECORD_KERNEL_CALLS_H
#define KYMO_RECORD_KERNEL_CALLS_H

#include "probe/session.h"
#include "record/kernel.h"
#include "record/output.h"

#define RECORDING_CALLS_SITES 2	/* the tracepoints at which calls are entered and left */

struct recording_calls;

struct recording_calls_options {
	const uint64_t *wanted;		/* a bit for each number; must outlive the source, as `events` */
	struct kymo_events *events;
	struct kernel_threads *threads;	/* of another source of the same recording, which outlives this one; NULL: its own */
	pid_t pid;			/* 0: every process */
	bool is_command;		/* which has not begun: it is this program still, until it executes something */
	bool follow;			/* with `pid`: the processes that descend from it, too */
	uint64_t buffer_size;		/* bytes a CPU */
	bool overwrite;
};

/* Calls are seen from here on. PERMISSION, NOT_FOUND, GONE as kymo_kernel_calls_create(). */
struct kymo_error *recording_calls_open(const struct recording_calls_options *options, struct recording_calls **ret);

/* NULL is allowed. */
void recording_calls_destroy(struct recording_calls *source);

/* As those of recording_kernel (record/kernel.h). `is_empty_ret`: there was no more than was taken. */
struct kymo_error *recording_calls_drain(struct recording_calls *source, struct output *output, bool *is_empty_ret);
struct kymo_error *recording_calls_flush(struct recording_calls *source, struct output *output);
struct kymo_error *recording_calls_finish(struct recording_calls *source, struct output *output);
uint64_t recording_calls_lost(const struct recording_calls *source);
bool recording_calls_has_processes(const struct recording_calls *source);

#endif
