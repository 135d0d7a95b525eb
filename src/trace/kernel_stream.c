/* From samples to packets of a stream file. */
#include "trace/kernel_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "ctf/stream.h"
#include "trace/packed.h"
#include "trace/trace.h"

#define PACKET_SIZE (128u << 10)
#define KEPT_PACKETS 16 /* at least, so that the oldest can go one by one */
/* records of so many bytes are closed by a loss, so that it is told where it was; fewer go with it */
#define LOSS_PACKET 4096u
#define PACKET_TICKS (UINT64_C(1) << 42) /* stamps in a packet are told apart by 44 bits */
#define TIME_MASK ((UINT64_C(1) << KYMO_EVENT_TIME_BITS) - 1)

struct entry {
	uint64_t tsc;
	uint32_t size;
};

/* A packet that is kept for the end. */
struct kept_packet {
	uint8_t *records;
	size_t size, n; /* bytes, and records */
	uint64_t begin, end, lost, sequence;
};

struct kymo_kernel_stream {
	struct kymo_ctf_stream *file; /* made with the first packet */
	const char *name;
	size_t index;
	uint32_t cpu;
	uint64_t keep, kept_size;
	struct kymo_kernel_pool *pool; /* `keep` is for all streams of it; or NULL */
	KYMO_VEC(struct kept_packet) kept;
	size_t n_dropped;               /* of them, at the front */
	KYMO_VEC(struct entry) entries; /* of the packet that is being filled, in the order of time */
	uint8_t *records;
	size_t size, packet_size;
	uint64_t lost;
	uint64_t sequence; /* of the last packet */
	uint64_t last_tsc; /* where it ended */
};

struct kymo_kernel_pool {
	uint64_t size, used;
	KYMO_VEC(struct kymo_kernel_stream *) streams;
};

struct kymo_error *kymo_kernel_pool_create(uint64_t size, struct kymo_kernel_pool **ret)
{
	struct kymo_kernel_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return &kymo_error_no_memory;
	pool->size = size;
	*ret = pool;
	return NULL;
}

void kymo_kernel_pool_destroy(struct kymo_kernel_pool *pool)
{
	if (!pool)
		return;
	kymo_vec_deinit(&pool->streams);
	free(pool);
}

static void leave_pool(struct kymo_kernel_stream *stream)
{
	struct kymo_kernel_pool *pool = stream->pool;

	if (!pool)
		return;
	pool->used -= stream->kept_size;
	for (size_t i = 0; i < pool->streams.n; i++) {
		if (pool->streams.items[i] != stream)
			continue;
		pool->streams.items[i] = pool->streams.items[--pool->streams.n];
		return;
	}
}

struct kymo_error *kymo_kernel_stream_create(const char *name, size_t index, uint32_t cpu, uint64_t keep,
					     struct kymo_kernel_pool *pool, struct kymo_kernel_stream **ret)
{
	struct kymo_kernel_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return &kymo_error_no_memory;
	stream->records = malloc(PACKET_SIZE);
	if (!stream->records || (pool && !kymo_vec_push(&pool->streams, stream))) {
		free(stream->records);
		free(stream);
		return &kymo_error_no_memory;
	}
	stream->pool = pool;
	stream->name = name;
	stream->index = index;
	stream->cpu = cpu;
	stream->keep = keep;
	stream->packet_size = keep && keep / KEPT_PACKETS < PACKET_SIZE ? keep / KEPT_PACKETS : PACKET_SIZE;
	*ret = stream;
	return NULL;
}

void kymo_kernel_stream_destroy(struct kymo_kernel_stream *stream)
{
	if (!stream)
		return;
	leave_pool(stream);
	for (size_t i = stream->n_dropped; i < stream->kept.n; i++)
		free(stream->kept.items[i].records);
	kymo_vec_deinit(&stream->kept);
	kymo_vec_deinit(&stream->entries);
	kymo_ctf_stream_destroy(stream->file);
	free(stream->records);
	free(stream);
}

/* ---- packets --------------------------------------------------------------------------------- */

static struct kymo_error *write_packet(const struct kymo_kernel_stream *stream, struct kymo_ctf_stream **file,
				       struct kymo_trace *output, const struct kept_packet *packet)
{
	kymo_cleanup_free uint8_t *packed = NULL;
	const uint8_t *records = packet->records;
	struct kymo_error *error = NULL;
	uint64_t size = packet->size, n;
	char name[32];

	if (output->trace.is_packed) {
		error = kymo_packed_from_plain(output, records, size, packet->begin, &packed, &size, &n);
		records = packed;
	}
	/* As in trace.c: readers see what was lost before a packet by the one in front of it. */
	if (!error && !*file) {
		snprintf(name, sizeof(name), "%s_%zu", stream->name, stream->index);
		error = kymo_ctf_stream_create(output->dirfd, name, output->trace.uuid, stream->cpu, file);
		if (!error)
			error = kymo_ctf_stream_append(*file, packet->records, 0, packet->begin, packet->begin, 0, 0);
	}
	if (!error)
		error = kymo_ctf_stream_append(*file, records, size, packet->begin, packet->end, packet->lost,
					       packet->sequence);
	return error;
}

/* Another thread may report how far it is. */
static void count(struct kymo_trace *output, uint64_t bytes, uint64_t events)
{
	__atomic_store_n(&output->bytes, output->bytes + bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&output->events, output->events + events, __ATOMIC_RELAXED);
}

static void drop_oldest(struct kymo_kernel_stream *stream, struct kymo_trace *output)
{
	struct kept_packet *oldest = &stream->kept.items[stream->n_dropped++];

	stream->kept_size -= oldest->size;
	if (stream->pool)
		stream->pool->used -= oldest->size;
	count(output, 0 - (uint64_t)oldest->size, 0 - (uint64_t)oldest->n);
	output->dropped_bytes += oldest->size;
	output->dropped_events += oldest->n;
	free(oldest->records);
	if (stream->n_dropped > 64 && stream->n_dropped > stream->kept.n / 2) {
		stream->kept.n -= stream->n_dropped;
		memmove(stream->kept.items, stream->kept.items + stream->n_dropped,
			stream->kept.n * sizeof(stream->kept.items[0]));
		stream->n_dropped = 0;
	}
}

/* The stream of a pool whose first packet is the oldest; each keeps one packet, as the newest of its CPU. */
static struct kymo_kernel_stream *oldest_of(const struct kymo_kernel_pool *pool)
{
	struct kymo_kernel_stream *oldest = NULL;

	for (size_t i = 0; i < pool->streams.n; i++) {
		struct kymo_kernel_stream *stream = pool->streams.items[i];

		if (stream->n_dropped + 1 >= stream->kept.n)
			continue;
		if (!oldest || stream->kept.items[stream->n_dropped].end < oldest->kept.items[oldest->n_dropped].end)
			oldest = stream;
	}
	return oldest;
}

static void keep_within_pool(struct kymo_kernel_pool *pool, struct kymo_trace *output)
{
	struct kymo_kernel_stream *oldest = oldest_of(pool);

	for (; oldest && pool->used > pool->size; oldest = oldest_of(pool))
		drop_oldest(oldest, output);
}

/* Flight recorder: forget the oldest packets where there are more than `keep` bytes of them. */
static struct kymo_error *keep_packet(struct kymo_kernel_stream *stream, struct kymo_trace *output,
				      const struct kept_packet *packet)
{
	struct kept_packet copy = *packet;

	copy.records = malloc(packet->size ? packet->size : 1);
	if (copy.records)
		memcpy(copy.records, packet->records, packet->size);
	if (!copy.records || !kymo_vec_push(&stream->kept, copy)) {
		free(copy.records);
		return &kymo_error_no_memory;
	}
	stream->kept_size += copy.size;
	count(output, copy.size, copy.n);
	if (stream->pool) {
		stream->pool->used += copy.size;
		keep_within_pool(stream->pool, output);
		return NULL;
	}
	while (stream->kept_size > stream->keep && stream->n_dropped + 1 < stream->kept.n)
		drop_oldest(stream, output);
	return NULL;
}

static struct kymo_error *close_packet(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t begin,
				       uint64_t end)
{
	struct kept_packet packet = {
		.records = stream->records,
		.size = stream->size,
		.n = stream->entries.n,
		.begin = begin,
		.end = end,
		.lost = stream->lost,
		.sequence = ++stream->sequence,
	};
	struct kymo_error *error = stream->keep ? keep_packet(stream, output, &packet)
						: write_packet(stream, &stream->file, output, &packet);

	if (!stream->keep)
		count(output, packet.size, packet.n);
	stream->last_tsc = end;
	stream->entries.n = 0;
	stream->size = 0;
	return error;
}

struct kymo_error *kymo_kernel_stream_flush(struct kymo_kernel_stream *stream, struct kymo_trace *output)
{
	if (!stream->entries.n)
		return NULL;
	return close_packet(stream, output, stream->entries.items[0].tsc,
			    stream->entries.items[stream->entries.n - 1].tsc);
}

struct kymo_error *kymo_kernel_stream_skip(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t tsc)
{
	struct kymo_error *error = kymo_kernel_stream_flush(stream, output);

	stream->sequence++;
	if (tsc < stream->last_tsc)
		tsc = stream->last_tsc;
	return error ? error : close_packet(stream, output, tsc, tsc);
}

struct kymo_error *kymo_kernel_stream_copy(struct kymo_kernel_stream *stream, struct kymo_trace *output,
					   struct kymo_trace *copy)
{
	struct kymo_error *error = kymo_kernel_stream_flush(stream, output);
	struct kymo_ctf_stream *file = NULL;

	for (size_t i = stream->n_dropped; i < stream->kept.n && !error; i++) {
		error = write_packet(stream, &file, copy, &stream->kept.items[i]);
		copy->bytes += stream->kept.items[i].size;
	}
	kymo_ctf_stream_destroy(file);
	return error;
}

/* ---- records --------------------------------------------------------------------------------- */

/* A packet for a loss, between the last record and the one that comes. */
static struct kymo_error *note_loss(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t tsc,
				    uint64_t lost)
{
	struct kymo_error *error = NULL;

	if (stream->size && stream->size < LOSS_PACKET) {
		stream->lost = lost;
		return NULL;
	}
	error = kymo_kernel_stream_flush(stream, output);
	stream->lost = lost;
	if (error)
		return error;
	if (tsc < stream->last_tsc)
		tsc = stream->last_tsc;
	return close_packet(stream, output, stream->last_tsc ? stream->last_tsc : tsc, tsc);
}

static bool spans_too_much(const struct kymo_kernel_stream *stream, uint64_t tsc)
{
	return stream->entries.n && tsc > stream->entries.items[0].tsc &&
	       tsc - stream->entries.items[0].tsc > PACKET_TICKS;
}

struct kymo_error *kymo_kernel_stream_add(struct kymo_kernel_stream *stream, struct kymo_trace *output,
					  const uint8_t *record, size_t size, uint64_t tsc, uint64_t lost)
{
	struct kymo_error *error = NULL;
	size_t at, behind = 0;
	uint64_t header;

	if (stream->size + size > stream->packet_size || spans_too_much(stream, tsc))
		error = kymo_kernel_stream_flush(stream, output);
	if (!error && lost > stream->lost)
		error = note_loss(stream, output, tsc, lost);
	if (error)
		return error;
	if (tsc < stream->last_tsc)
		tsc = stream->last_tsc;
	at = stream->entries.n;
	if (!kymo_vec_push(&stream->entries, (struct entry){ tsc, (uint32_t)size }))
		return &kymo_error_no_memory;
	/* A thread may lose the CPU between its stamp and the ring, so neighbors can be the wrong way round. */
	for (; at > 0 && stream->entries.items[at - 1].tsc > tsc; at--) {
		behind += stream->entries.items[at - 1].size;
		stream->entries.items[at] = stream->entries.items[at - 1];
	}
	stream->entries.items[at] = (struct entry){ tsc, (uint32_t)size };
	memmove(stream->records + stream->size - behind + size, stream->records + stream->size - behind, behind);
	memcpy(&header, record, sizeof(header));
	header |= (tsc & TIME_MASK) << KYMO_EVENT_ID_BITS;
	memcpy(stream->records + stream->size - behind, record, size);
	memcpy(stream->records + stream->size - behind, &header, sizeof(header));
	stream->size += size;
	return NULL;
}

static struct kymo_error *write_kept(struct kymo_kernel_stream *stream, struct kymo_trace *output)
{
	struct kymo_error *error = NULL;

	for (size_t i = stream->n_dropped; i < stream->kept.n && !error; i++)
		error = write_packet(stream, &stream->file, output, &stream->kept.items[i]);
	return error;
}

struct kymo_error *kymo_kernel_stream_finish(struct kymo_kernel_stream *stream, struct kymo_trace *output, uint64_t tsc,
					     uint64_t lost)
{
	struct kymo_error *error = kymo_kernel_stream_flush(stream, output);

	if (tsc < stream->last_tsc)
		tsc = stream->last_tsc;
	if (!error && lost > stream->lost) {
		stream->lost = lost;
		error = close_packet(stream, output, stream->last_tsc ? stream->last_tsc : tsc, tsc);
	}
	return error || stream->pool ? error : write_kept(stream, output);
}

struct kymo_error *kymo_kernel_pool_write(const struct kymo_kernel_pool *pool, struct kymo_trace *output)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; pool && i < pool->streams.n && !error; i++)
		error = write_kept(pool->streams.items[i], output);
	return error;
}
