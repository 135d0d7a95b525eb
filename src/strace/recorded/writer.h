/*
 * Records of system calls, whatever their source: into streams, with the threads that make them in the trace's tables.
 * Private to the room.
 *
 * Used from one thread at a time.
 */
#ifndef KYMO_STRACE_RECORDED_WRITER_H
#define KYMO_STRACE_RECORDED_WRITER_H

#include <stdint.h>

#include "kernel/calls.h"
#include "strace/recorded/source.h"

struct kymo_call_source_options;

struct strace_writer;

/* Of the options the writer takes `wanted`, `events`, `threads`, `pid`, `is_command`, `warn` with its `data`, and
 * `overwrite` with `keep` bytes a stream, or `pool`. */
struct kymo_error *strace_writer_create(const struct kymo_call_source_options *options, uint64_t keep,
					struct strace_writer **ret);

/* NULL is allowed. */
void strace_writer_destroy(struct strace_writer *writer);

bool strace_writer_wants(const struct strace_writer *writer, uint64_t number);

/* Whether the trace has thread `tid` of process `pid`, by a name: then `name` of its calls may be NULL, if that has not
 * changed. */
bool strace_writer_knows(const struct strace_writer *writer, int32_t tid, int32_t pid);

/* That calls of 32 bits are made, the first time. */
void strace_writer_tell_i386(struct strace_writer *writer);

/* A call that was entered or left, or the end of a thread, at `tsc`; others are passed over. Goes into the stream of
 * `call->cpu`. */
struct kymo_error *strace_writer_add(struct strace_writer *writer, struct kymo_trace *output,
				     const struct kymo_kernel_call *call, uint64_t tsc);

/* The thread of a call that is not recorded itself is called `call->name` from `tsc` on. */
struct kymo_error *strace_writer_rename(struct strace_writer *writer, struct kymo_trace *output,
					const struct kymo_kernel_call *call, uint64_t tsc);

/* As those of kernel_stream. `lost` is the running total, of all CPUs. */
struct kymo_error *strace_writer_flush(struct strace_writer *writer, struct kymo_trace *output);
struct kymo_error *strace_writer_copy(struct strace_writer *writer, struct kymo_trace *output, struct kymo_trace *copy);
struct kymo_error *strace_writer_finish(struct strace_writer *writer, struct kymo_trace *output, uint64_t lost);

/* One buffer has what others have a CPU. */
uint64_t strace_writer_buffer(const struct kymo_call_source_options *options);

#endif
