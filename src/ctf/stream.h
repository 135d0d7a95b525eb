/*
 * Writing a stream file: packets, whole ones only.
 *
 * One thread a stream. The process should ignore SIGXFSZ, so that a limit on file sizes comes back as an error, too.
 */
#ifndef KYMO_CTF_STREAM_H
#define KYMO_CTF_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_ctf_stream;

/* Make the stream file `name` in the directory `dirfd` (which need not stay open); it must not exist. A name that a
 * reader would not take for a stream ("metadata", ".…", with a slash) is refused. */
struct kymo_error *kymo_ctf_stream_create(int dirfd, const char *name, const uint8_t uuid[16], uint32_t cpu,
					  struct kymo_ctf_stream **ret);

/*
 * Append a packet: header and context, then `size` bytes of records as in wire/event.h. Stamps are TSC values that
 * enclose all records; `discarded` is the running total of the stream, `seq` its running number (struct
 * kymo_ctf_packet). Nothing is buffered: the packet is with the kernel when this returns NULL.
 *
 * On an error (such as a full disk) the file is cut after the last whole packet, so that the trace stays readable; the
 * stream can be used on, and a later append may succeed.
 */
struct kymo_error *kymo_ctf_stream_append(struct kymo_ctf_stream *stream, const void *payload, size_t size,
					  uint64_t ts_begin, uint64_t ts_end, uint64_t discarded, uint64_t seq);

/* Bytes in the file. */
uint64_t kymo_ctf_stream_size(const struct kymo_ctf_stream *stream);

/* Close the file; it stays. NULL is allowed. */
void kymo_ctf_stream_destroy(struct kymo_ctf_stream *stream);

#endif
