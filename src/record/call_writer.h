/*
 * Records of system calls, whoever has seen them: into streams, with the threads that make them in the trace's tables.
 * Private to the room.
 *
 * Used from one thread at a time.
 */
#ifndef KYMO_RECORD_CALL_WRITER_H
#define KYMO_RECORD_CALL_WRITER_H

#include <stdint.h>

#include "kernel/calls.h"
#include "record/calls.h"

struct recording_calls_options;

struct call_writer;

/* Of the options the writer takes `wanted`, `events`, `threads`, `pid`, `is_command`, `warn` with its `data`, and
 * `overwrite` with `keep` bytes a stream. */
struct kymo_error *call_writer_create(const struct recording_calls_options *options, uint64_t keep,
				      struct call_writer **ret);

/* NULL is allowed. */
void call_writer_destroy(struct call_writer *writer);

bool call_writer_wants(const struct call_writer *writer, uint64_t number);

/* Whether the trace has thread `tid` of process `pid`, by a name: then `name` of its calls may be NULL, if that has not
 * changed. */
bool call_writer_knows(const struct call_writer *writer, int32_t tid, int32_t pid);

/* That calls of 32 bits are made, the first time. */
void call_writer_tell_i386(struct call_writer *writer);

/* A call that was entered or left, or the end of a thread, at `tsc`; others are passed over. Goes into the stream of
 * `call->cpu`. */
struct kymo_error *call_writer_add(struct call_writer *writer, struct kymo_trace *output,
				   const struct kymo_kernel_call *call, uint64_t tsc);

/* The thread of a call that is not recorded itself is called `call->name` from `tsc` on. */
struct kymo_error *call_writer_rename(struct call_writer *writer, struct kymo_trace *output,
				      const struct kymo_kernel_call *call, uint64_t tsc);

/* As those of kernel_stream. `lost` is the running total, of all CPUs. */
struct kymo_error *call_writer_flush(struct call_writer *writer, struct kymo_trace *output);
struct kymo_error *call_writer_copy(struct call_writer *writer, struct kymo_trace *output, struct kymo_trace *copy);
struct kymo_error *call_writer_finish(struct call_writer *writer, struct kymo_trace *output, uint64_t lost);

/* One buffer has what others have a CPU. */
uint64_t recording_calls_buffer(const struct recording_calls_options *options);

#endif
