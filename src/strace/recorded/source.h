/*
 * System calls that are seen from outside of the process, with the memory that they are made with, as a source of
 * events (docs/internals/syscalls.md): by the kernel's tracepoints (kernel.h) or by a hub that traces the threads
 * (hub.h). Both write the same records, by writer.h.
 *
 * Its streams are files of their own; its events are those of kymo_events_add_syscalls(), with memory.
 */
#ifndef KYMO_STRACE_RECORDED_SOURCE_H
#define KYMO_STRACE_RECORDED_SOURCE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "trace/trace.h"

#define KYMO_CALL_SOURCE_SITES 2 /* where calls are entered and left */

struct kymo_call_source;
struct kymo_events;
struct kymo_hub;
struct kymo_kernel_pool;
struct kymo_kernel_threads;

struct kymo_call_source_options {
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
	struct kymo_kernel_pool *pool; /* with `overwrite`: what all streams keep together, or NULL; outlives the source
					*/
	const volatile sig_atomic_t *stop; /* not 0: the recording is to end early */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

/* What each way does. `output` is used from the first call that has it until the source is destroyed. */
struct kymo_call_source_ops {
	/* NULL is allowed: records are made from the opening on. */
	struct kymo_error *(*begin)(struct kymo_call_source *calls, struct kymo_trace *output);
	struct kymo_error *(*drain)(struct kymo_call_source *calls, struct kymo_trace *output, bool *is_empty_ret);
	struct kymo_error *(*flush)(struct kymo_call_source *calls, struct kymo_trace *output);
	struct kymo_error *(*copy)(struct kymo_call_source *calls, struct kymo_trace *output,
				   struct kymo_trace *copy); /* NULL: it cannot */
	struct kymo_error *(*finish)(struct kymo_call_source *calls, struct kymo_trace *output);
	uint64_t (*lost)(const struct kymo_call_source *calls);
	bool (*has_processes)(const struct kymo_call_source *calls);
	bool (*command_ended)(const struct kymo_call_source *calls, int *status_ret); /* NULL: not known */
	struct kymo_hub *(*share)(struct kymo_call_source *calls);                    /* may be NULL */
	void (*destroy)(struct kymo_call_source *calls);
};

struct kymo_call_source {
	const struct kymo_call_source_ops *ops;
};

/* Records are made from here on, and a command that was launched runs. */
static inline struct kymo_error *kymo_call_source_begin(struct kymo_call_source *calls, struct kymo_trace *output)
{
	return calls->ops->begin ? calls->ops->begin(calls, output) : NULL;
}

/* Write what there is to the files of `output`. `is_empty_ret`: there was no more than was taken. */
static inline struct kymo_error *kymo_call_source_drain(struct kymo_call_source *calls, struct kymo_trace *output,
							bool *is_empty_ret)
{
	return calls->ops->drain(calls, output, is_empty_ret);
}

static inline struct kymo_error *kymo_call_source_flush(struct kymo_call_source *calls, struct kymo_trace *output)
{
	return calls->ops->flush(calls, output);
}

static inline bool kymo_call_source_can_copy(const struct kymo_call_source *calls)
{
	return calls->ops->copy;
}

static inline struct kymo_error *kymo_call_source_copy(struct kymo_call_source *calls, struct kymo_trace *output,
						       struct kymo_trace *copy)
{
	return calls->ops->copy(calls, output, copy);
}

static inline struct kymo_error *kymo_call_source_finish(struct kymo_call_source *calls, struct kymo_trace *output)
{
	return calls->ops->finish(calls, output);
}

static inline uint64_t kymo_call_source_lost(const struct kymo_call_source *calls)
{
	return calls->ops->lost(calls);
}

/* Whether any is left that is recorded. */
static inline bool kymo_call_source_has_processes(const struct kymo_call_source *calls)
{
	return calls->ops->has_processes(calls);
}

/* Of a command that the source has launched: whether it has ended, and the status as waitpid() gives it. */
static inline bool kymo_call_source_command_ended(const struct kymo_call_source *calls, int *status_ret)
{
	return calls->ops->command_ended && calls->ops->command_ended(calls, status_ret);
}

/* After kymo_call_source_finish(): the hub through which others trace what was recorded, the caller's from here on, or
 * NULL. */
static inline struct kymo_hub *kymo_call_source_share(struct kymo_call_source *calls)
{
	return calls->ops->share ? calls->ops->share(calls) : NULL;
}

/* NULL is allowed. */
static inline void kymo_call_source_destroy(struct kymo_call_source *calls)
{
	if (calls)
		calls->ops->destroy(calls);
}

#endif
