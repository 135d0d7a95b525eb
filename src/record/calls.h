/*
 * System calls that are seen from outside of the process, with the memory that they are made with, as a source of
 * events (docs/internals/syscalls.md): by the kernel's tracepoints (kernel_calls.h) or by a hub that traces the threads
 * (hub_calls.h). Both write the same records, by call_writer.h. Private to the room.
 *
 * Its streams are files of their own; its events are those of kymo_events_add_syscalls(), with memory.
 */
#ifndef KYMO_RECORD_CALLS_H
#define KYMO_RECORD_CALLS_H

#include "record/kernel.h"
#include "trace/trace.h"

#define RECORDING_CALLS_SITES 2 /* where calls are entered and left */

struct recording_calls;

struct recording_calls_options {
	const uint64_t *wanted; /* a bit for each number; must outlive the source, as `events` */
	struct kymo_events *events;
	struct kymo_kernel_threads
		*threads;     /* of another source of the same recording, which outlives this one; NULL: its own */
	pid_t pid;            /* 0: every process */
	bool is_command;      /* which has not begun: it is this program still, until it executes something */
	bool follow;          /* with `pid`: the processes that descend from it, too */
	size_t string_size;   /* so many bytes of a string are recorded */
	uint64_t buffer_size; /* bytes a CPU */
	bool overwrite;
	const struct kymo_record_control *control;
	void (*warn)(const char *sentence, void *data);
	void *data;
};

/* What each way does. `output` is used from the first call that has it until the source is destroyed. */
struct recording_calls_ops {
	/* NULL is allowed: records are made from the opening on. */
	struct kymo_error *(*begin)(struct recording_calls *calls, struct kymo_trace *output);
	struct kymo_error *(*drain)(struct recording_calls *calls, struct kymo_trace *output, bool *is_empty_ret);
	struct kymo_error *(*flush)(struct recording_calls *calls, struct kymo_trace *output);
	struct kymo_error *(*copy)(struct recording_calls *calls, struct kymo_trace *output,
				   struct kymo_trace *copy); /* NULL: it cannot */
	struct kymo_error *(*finish)(struct recording_calls *calls, struct kymo_trace *output);
	uint64_t (*lost)(const struct recording_calls *calls);
	bool (*has_processes)(const struct recording_calls *calls);
	bool (*command_ended)(const struct recording_calls *calls, int *status_ret); /* NULL: nobody knows */
	struct kymo_hub *(*share)(struct recording_calls *calls);                    /* may be NULL */
	void (*destroy)(struct recording_calls *calls);
};

struct recording_calls {
	const struct recording_calls_ops *ops;
};

/* Records are made from here on, and a command that was launched runs. */
static inline struct kymo_error *recording_calls_begin(struct recording_calls *calls, struct kymo_trace *output)
{
	return calls->ops->begin ? calls->ops->begin(calls, output) : NULL;
}

/* As those of recording_kernel (record/kernel.h). `is_empty_ret`: there was no more than was taken. */
static inline struct kymo_error *recording_calls_drain(struct recording_calls *calls, struct kymo_trace *output,
						       bool *is_empty_ret)
{
	return calls->ops->drain(calls, output, is_empty_ret);
}

static inline struct kymo_error *recording_calls_flush(struct recording_calls *calls, struct kymo_trace *output)
{
	return calls->ops->flush(calls, output);
}

static inline bool recording_calls_can_copy(const struct recording_calls *calls)
{
	return calls->ops->copy;
}

static inline struct kymo_error *recording_calls_copy(struct recording_calls *calls, struct kymo_trace *output,
						      struct kymo_trace *copy)
{
	return calls->ops->copy(calls, output, copy);
}

static inline struct kymo_error *recording_calls_finish(struct recording_calls *calls, struct kymo_trace *output)
{
	return calls->ops->finish(calls, output);
}

static inline uint64_t recording_calls_lost(const struct recording_calls *calls)
{
	return calls->ops->lost(calls);
}

/* Whether any is left that is recorded. */
static inline bool recording_calls_has_processes(const struct recording_calls *calls)
{
	return calls->ops->has_processes(calls);
}

/* Of a command that the source has launched: whether it has ended, and the status as waitpid() gives it. */
static inline bool recording_calls_command_ended(const struct recording_calls *calls, int *status_ret)
{
	return calls->ops->command_ended && calls->ops->command_ended(calls, status_ret);
}

/* Behind recording_calls_finish(): the hub through which others trace what was recorded, the caller's from here on, or
 * NULL. */
static inline struct kymo_hub *recording_calls_share(struct recording_calls *calls)
{
	return calls->ops->share ? calls->ops->share(calls) : NULL;
}

/* NULL is allowed. */
static inline void recording_calls_destroy(struct recording_calls *calls)
{
	if (calls)
		calls->ops->destroy(calls);
}

#endif
