/* A stream of the kernel's events, which is a file. */
#ifndef KYMO_TRACE_KERNEL_STREAM_H
#define KYMO_TRACE_KERNEL_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_kernel_stream;
struct kymo_trace;

/* Streams that keep packets of `size` bytes together. It must outlive them. NO_MEMORY. */
struct kymo_kernel_pool;
struct kymo_error *kymo_kernel_pool_create(uint64_t size, struct kymo_kernel_pool **ret);
void kymo_kernel_pool_destroy(struct kymo_kernel_pool *pool); /* NULL is allowed */

/* The file will be called NAME_INDEX; `name` is static. With `keep` bytes given, packets stay in memory, the newest of
 * that many; or of all that `pool` has, if it is not NULL, and `keep` is about this stream's share. */
struct kymo_error *kymo_kernel_stream_create(const char *name, size_t index, uint32_t cpu, uint64_t keep,
					     struct kymo_kernel_pool *pool, struct kymo_kernel_stream **ret);
void kymo_kernel_stream_destroy(struct kymo_kernel_stream *stream);

/*
 * Append a record, its header's time still 0. `lost` is the running total of events lost before it. Records may come a
 * little out of order; stamps in the file never go back.
 */
struct kymo_error *kymo_kernel_stream_add(struct kymo_kernel_stream *stream, struct kymo_trace *output,
					  const uint8_t *record, size_t size, uint64_t tsc, uint64_t lost);
struct kymo_error *kymo_kernel_stream_flush(struct kymo_kernel_stream *stream, struct kymo_trace *output);

/* Records were overwritten before they came here: the trace shows a packet that is not there, and an empty one at
 * `tsc`, behind which nothing is missing. */
struct kymo_error *kymo_kernel_stream_skip(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t tsc);

/* Write the packets that are kept to the directory of `copy`, too, and keep them. */
struct kymo_error *kymo_kernel_stream_copy(struct kymo_kernel_stream *stream, struct kymo_trace *output,
					   struct kymo_trace *copy);

/* Write what is kept, and losses after the last record. Of a stream in a pool kymo_kernel_pool_write() does. */
struct kymo_error *kymo_kernel_stream_finish(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t tsc,
					     uint64_t lost);

/* Once all streams of the pool are finished, as the last records of one may still displace another's: write what is
 * kept of all. `pool` may be NULL. */
struct kymo_error *kymo_kernel_pool_write(const struct kymo_kernel_pool *pool, struct kymo_trace *output);

#endif
