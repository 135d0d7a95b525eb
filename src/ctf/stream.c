#include "ctf/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctf/packet.h"

#define LARGE_PACKET (256u << 10) /* below, a stream does not grow fast */
#define CACHED ((uint64_t)32 << 20)

struct kymo_ctf_stream {
	int fd;
	uint64_t size;    /* end of the last whole packet */
	uint64_t dropped; /* up to here the page cache was told to forget */
	char *name;
	struct kymo_ctf_packet header; /* of the next packet */
};

struct kymo_error *kymo_ctf_stream_create(int dirfd, const char *name, const uint8_t uuid[16], uint32_t cpu,
					  struct kymo_ctf_stream **ret)
{
	struct kymo_ctf_stream *stream;

	if (!*name || *name == '.' || strchr(name, '/') || !strcmp(name, "metadata"))
		return kymo_error_create(KYMO_ERROR_FAILED, "'%s' cannot be the name of a stream", name);
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return &kymo_error_no_memory;
	stream->fd = -1;
	stream->name = strdup(name);
	if (!stream->name) {
		kymo_ctf_stream_destroy(stream);
		return &kymo_error_no_memory;
	}
	stream->fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (stream->fd < 0 || fchmod(stream->fd, 0600)) {
		struct kymo_error *error = kymo_error_errno(errno, "cannot create the stream %s", name);

		kymo_ctf_stream_destroy(stream);
		return error;
	}
	stream->header.magic = KYMO_CTF_MAGIC;
	stream->header.cpu_id = cpu;
	memcpy(stream->header.uuid, uuid, sizeof(stream->header.uuid));
	*ret = stream;
	return NULL;
}

void kymo_ctf_stream_destroy(struct kymo_ctf_stream *stream)
{
	if (!stream)
		return;
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->name);
	free(stream);
}

uint64_t kymo_ctf_stream_size(const struct kymo_ctf_stream *stream)
{
	return stream->size;
}

/* Header and payload in one call where the kernel takes them so; it may also take a part, near the end of the disk. */
static int write_packet(struct kymo_ctf_stream *stream, const void *payload, size_t size)
{
	struct iovec parts[2] = {
		{ &stream->header, sizeof(stream->header) },
		{ (void *)(uintptr_t)payload, size },
	};
	struct iovec *part = parts;
	uint64_t at = stream->size;

	while (part < parts + kymo_countof(parts)) {
		ssize_t done = pwritev(stream->fd, part, (int)(parts + kymo_countof(parts) - part), (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			return -EIO;
		at += (uint64_t)done;
		for (size_t left = (size_t)done; part < parts + kymo_countof(parts); part++) {
			size_t step = left < part->iov_len ? left : part->iov_len;

			part->iov_base = (char *)part->iov_base + step;
			part->iov_len -= step;
			left -= step;
			if (part->iov_len)
				break;
		}
	}
	return 0;
}

/*
 * A recording of gigabytes would fill the page cache and push the target's files out of it. It would also cost a fresh
 * page for each page written, which takes longer than the copy. So writing to the disk begins at once, and what lies
 * CACHED bytes back, and is on the disk by then, is dropped. Nothing is waited for: where the disk is slow the pages
 * stay, as ever. Both calls are advice; on a tmpfs they do nothing.
 */
static void keep_cache_small(struct kymo_ctf_stream *stream, uint64_t written)
{
	sync_file_range(stream->fd, (off_t)(stream->size - written), (off_t)written, SYNC_FILE_RANGE_WRITE);
	if (stream->size < stream->dropped + 2 * CACHED)
		return;
	posix_fadvise(stream->fd, (off_t)stream->dropped, (off_t)(stream->size - CACHED - stream->dropped),
		      POSIX_FADV_DONTNEED);
	stream->dropped = stream->size - CACHED;
}

struct kymo_error *kymo_ctf_stream_append(struct kymo_ctf_stream *stream, const void *payload, size_t size,
					  uint64_t ts_begin, uint64_t ts_end, uint64_t discarded, uint64_t seq)
{
	struct kymo_ctf_packet *header = &stream->header;
	int err;

	header->content_size = header->packet_size = ((uint64_t)size + sizeof(*header)) * 8;
	header->timestamp_begin = ts_begin;
	header->timestamp_end = ts_end;
	header->events_discarded = discarded;
	header->packet_seq_num = seq;
	err = write_packet(stream, payload, size);
	if (!err) {
		stream->size += sizeof(*header) + size;
		if (size >= LARGE_PACKET)
			keep_cache_small(stream, sizeof(*header) + size);
		return NULL;
	}
	/* Should this fail too, readers leave the cut packet's last record out, and a later append writes over it. */
	while (ftruncate(stream->fd, (off_t)stream->size) && errno == EINTR)
		;
	return kymo_error_errno(err, "cannot write the stream %s", stream->name);
}
