#include "trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctf/stream.h"
#include "trace/directory.h"
#include "trace/packed.h"
#include "wire/packed.h"

#define WALKED 128 /* records of a packet that are looked at, once WALKED_WHOLE were: that takes some milliseconds */
#define WALKED_WHOLE (1u << 20)

/* ---- the directory --------------------------------------------------------------------------- */

struct kymo_error *kymo_trace_init(const char *path, struct kymo_trace *ret)
{
	struct kymo_trace output = { .dirfd = -1, .path = kymo_directory_name(path) };
	struct kymo_error *error = output.path ? kymo_directory_make(path, &output.dirfd) : &kymo_error_no_memory;

	if (!error && getrandom(output.trace.uuid, sizeof(output.trace.uuid), 0) != sizeof(output.trace.uuid))
		error = kymo_error_errno(errno, "no random numbers for the trace's uuid");
	if (error) {
		kymo_trace_deinit(&output);
		return error;
	}
	*ret = output;
	return NULL;
}

void kymo_trace_deinit(struct kymo_trace *output)
{
	for (size_t i = 0; i < output->streams.n; i++)
		kymo_ctf_stream_destroy(output->streams.items[i].ctf);
	kymo_vec_deinit(&output->streams);
	kymo_kept_destroy(output->kept);
	free(output->by_id);
	kymo_ctf_trace_deinit(&output->trace);
	if (output->dirfd >= 0)
		close(output->dirfd);
	free(output->path);
	*output = (struct kymo_trace){ .dirfd = -1 };
}

void kymo_trace_restart(struct kymo_trace *output)
{
	uint8_t uuid[sizeof(output->trace.uuid)];

	memcpy(uuid, output->trace.uuid, sizeof(uuid));
	kymo_ctf_trace_deinit(&output->trace);
	output->trace = (struct kymo_ctf_trace){ .n_events = 0 };
	memcpy(output->trace.uuid, uuid, sizeof(uuid));
	free(output->by_id);
	output->by_id = NULL;
	output->n_ids = 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The size that all records have; 0 where they differ. */
static uint32_t only_size(const struct kymo_ctf_trace *trace)
{
	uint32_t size = 0;

	for (size_t i = 0; i < trace->n_events; i++) {
		const struct kymo_ctf_event *event = &trace->events[i];

		if (!kymo_ctf_has_records(event) || event->kind == KYMO_CTF_AGGREGATION || kymo_ctf_is_of_stacks(event))
			continue;
		if (!event->is_fixed || (size && event->size != size))
			return 0;
		size = event->size;
	}
	return size;
}

struct kymo_error *kymo_trace_index_events(struct kymo_trace *output)
{
	const struct kymo_ctf_trace *trace = &output->trace;
	uint32_t most = 0, *by_id;

	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].id > most)
			most = trace->events[i].id;
	by_id = realloc(output->by_id, (most + 1) * sizeof(*by_id));
	if (!by_id)
		return &kymo_error_no_memory;
	memset(by_id, 0, (most + 1) * sizeof(*by_id));
	for (size_t i = 0; i < trace->n_events; i++)
		by_id[trace->events[i].id] = (uint32_t)i + 1;
	output->by_id = by_id;
	output->n_ids = most + 1;
	output->only_size = trace->is_packed ? 0 : only_size(trace);
	return NULL;
}

/*
 * How many records a packet has: they are walked over, strings and all. In a long recording only the first ones are,
 * and the rest is taken to be of the same sizes; the report counts them all. Exact where all are of one size.
 */
static uint64_t about_events(struct kymo_trace *output, const struct kymo_ring_packet *packet)
{
	const bool was_estimate = output->is_estimate;
	const uint64_t most = output->n_walked < WALKED_WHOLE - WALKED ? WALKED_WHOLE - output->n_walked : WALKED;
	uint64_t at = 0, n = 0;

	if (output->only_size && packet->size % output->only_size == 0)
		return packet->size / output->only_size;
	output->is_estimate = true;
	if (output->trace.is_packed) {
		n = kymo_packed_count(output, packet->records, packet->size, most, &at);
		output->n_walked += n;
		if (at == packet->size)
			output->is_estimate = was_estimate;
		if (at == packet->size || at <= KYMO_PACKED_THREAD_SIZE)
			return n;
		/* Without the first record, which is a thread's. */
		return n * (packet->size - KYMO_PACKED_THREAD_SIZE) / (at - KYMO_PACKED_THREAD_SIZE);
	}
	while (n < most && at + sizeof(uint64_t) <= packet->size) {
		const struct kymo_ctf_event *event;
		uint64_t header;
		uint32_t id, size;

		memcpy(&header, packet->records + at, sizeof(header));
		id = (uint32_t)(header & KYMO_EVENT_ID_MAX);
		event = kymo_trace_event(output, id);
		if (!event)
			return n;
		size = kymo_ctf_record_size(event, packet->records + at, packet->size - at);
		if (!size)
			return n;
		at += size;
		n++;
	}
	output->n_walked += n;
	if (at == packet->size)
		output->is_estimate = was_estimate;
	return at ? n * packet->size / at : 0;
}

/*
 * A new stream begins with an empty packet: readers detect losses by comparing a packet with the one before it. Without
 * this packet they would miss what was lost or overwritten before the first.
 */
static struct kymo_error *make_file(const struct kymo_trace *output, const struct kymo_trace_stream *stream,
				    uint64_t tsc, struct kymo_ctf_stream **ret)
{
	struct kymo_error *error;
	char name[64];

	if (stream->ring == KYMO_TRACE_VFORKS)
		snprintf(name, sizeof(name), "stream_vforks");
	else if (stream->ring == KYMO_TRACE_ROWS)
		snprintf(name, sizeof(name), "stream_rows");
	else if (stream->ring == KYMO_TRACE_FRAMES)
		snprintf(name, sizeof(name), "stream_frames");
	else if (stream->ring == KYMO_TRACE_CALLS && stream->number)
		snprintf(name, sizeof(name), "stream_calls_%zu", stream->number);
	else if (stream->ring == KYMO_TRACE_CALLS)
		snprintf(name, sizeof(name), "stream_calls");
	else if (stream->number)
		snprintf(name, sizeof(name), "stream_%zu_%zu", stream->ring, stream->number);
	else
		snprintf(name, sizeof(name), "stream_%zu", stream->ring);
	error = kymo_ctf_stream_create(output->dirfd, name, output->trace.uuid, stream->cpu, ret);
	return error ? error : kymo_ctf_stream_append(*ret, NULL, 0, tsc, tsc, 0, 0);
}

static struct kymo_error *make_stream(struct kymo_trace *output, size_t ring, uint32_t cpu,
				      const struct kymo_ring_packet *packet)
{
	struct kymo_trace_stream stream = { .ring = ring, .cpu = cpu };
	struct kymo_error *error = NULL;

	if (!kymo_vec_reserve(&output->streams, output->streams.n + 1))
		return &kymo_error_no_memory;
	for (size_t i = 0; i < output->streams.n; i++)
		stream.number += output->streams.items[i].ring == ring;
	if (!output->kept)
		error = make_file(output, &stream, packet->tsc_begin, &stream.ctf);
	if (stream.ctf || !error)
		output->streams.items[output->streams.n++] = stream;
	return error;
}

/* Packets of a stream are in the order of time, so one that others have used is fit for what begins after them. */
static bool is_fit(const struct kymo_trace_stream *stream, size_t ring, uint32_t cpu, uint64_t tsc)
{
	return !stream->is_taken && stream->ring == ring && stream->cpu == cpu && stream->last_tsc <= tsc;
}

static struct kymo_error *take_stream(struct kymo_trace *output, struct kymo_trace_position *position, uint32_t cpu,
				      const struct kymo_ring_packet *packet)
{
	struct kymo_trace_stream *stream;
	struct kymo_error *error = NULL;
	size_t i = 0;

	while (i < output->streams.n && !is_fit(&output->streams.items[i], position->ring, cpu, packet->tsc_begin))
		i++;
	if (i == output->streams.n)
		error = make_stream(output, position->ring, cpu, packet);
	if (i == output->streams.n)
		return error;
	stream = &output->streams.items[i];
	stream->is_taken = true;
	stream->first_sequence = stream->sequence;
	stream->first_lost = stream->lost;
	position->stream = i + 1;
	return error;
}

static void count_dropped(const struct kymo_kept_packet *packet, void *data)
{
	struct kymo_trace *output = data;

	output->bytes -= packet->size;
	output->events -= packet->events;
	output->dropped_bytes += packet->size;
	output->dropped_events += packet->events;
}

static struct kymo_error *keep_packet(struct kymo_trace *output, const struct kymo_kept_packet *packet,
				      const void *records)
{
	if (kymo_kept_push(output->kept, packet, records, count_dropped, output))
		return NULL;
	return kymo_error_create(KYMO_ERROR_FAILED, "a packet of %" PRIu64 " bytes is larger than all that is kept",
				 packet->size);
}

static struct kymo_error *append(struct kymo_trace *output, struct kymo_trace_position *position, uint32_t cpu,
				 const struct kymo_ring_packet *packet, uint64_t events)
{
	struct kymo_error *error = position->stream ? NULL : take_stream(output, position, cpu, packet);
	uint64_t begin = packet->tsc_begin, end = packet->tsc_end, sequence, lost;
	struct kymo_trace_stream *stream;

	if (error)
		return error;
	stream = &output->streams.items[position->stream - 1];
	/* What a healthy target writes is in order; a reader must not stumble over what a lying one does. */
	if (begin < stream->last_tsc)
		begin = stream->last_tsc;
	if (end < begin)
		end = begin;
	sequence = stream->first_sequence + packet->sequence - position->skipped + 1;
	lost = stream->first_lost + packet->lost;
	if (output->kept)
		error = keep_packet(output,
				    &(struct kymo_kept_packet){ .stream = position->stream - 1,
								.begin = begin,
								.end = end,
								.lost = lost,
								.sequence = sequence,
								.events = events,
								.size = packet->size },
				    packet->records);
	else
		error = kymo_ctf_stream_append(stream->ctf, packet->records, packet->size, begin, end, lost, sequence);
	if (error)
		return error;
	stream->last_tsc = end;
	stream->sequence = sequence;
	stream->lost = lost;
	output->bytes += packet->size;
	output->events += events;
	return NULL;
}

struct kymo_error *kymo_trace_append(struct kymo_trace *output, struct kymo_trace_position *position, uint32_t cpu,
				     const struct kymo_ring_packet *packet, bool is_counted)
{
	kymo_cleanup_free uint8_t *records = NULL;
	struct kymo_ring_packet packed = *packet;
	struct kymo_error *error;
	uint64_t n;

	if (!packet->is_plain || !output->trace.is_packed)
		return append(output, position, cpu, packet, is_counted ? about_events(output, packet) : 0);
	error = kymo_packed_from_plain(output, packet->records, packet->size, packet->tsc_begin, &records, &packed.size,
				       &n);
	if (error)
		return error;
	packed.records = records;
	return append(output, position, cpu, &packed, is_counted ? n : 0);
}

static struct kymo_error *append_packet(struct kymo_trace *output, struct kymo_trace_position *position, uint32_t cpu,
					const struct kymo_ring_packet *packet)
{
	return kymo_trace_append(output, position, cpu, packet, true);
}

struct kymo_error *kymo_trace_drain(struct kymo_trace *output, struct kymo_trace_position *position,
				    struct kymo_ring *ring, uint32_t cpu, size_t *n_ret)
{
	struct kymo_ring_packet packet;
	size_t n = 0;

	/* One round: a producer that is as fast as this must not keep the other rings waiting, or the end of the
	 * recording. */
	while (n < ring->n_subbuffers && kymo_ring_peek(ring, &packet)) {
		struct kymo_error *error = append_packet(output, position, cpu, &packet);

		if (error)
			return error;
		kymo_ring_release(ring);
		n++;
	}
	*n_ret = n;
	return NULL;
}

struct kymo_error *kymo_trace_copy(struct kymo_trace *output, struct kymo_trace_position *position,
				   const struct kymo_ring *ring, uint32_t cpu, uint8_t *room)
{
	struct kymo_ring reader = *ring;
	struct kymo_error *error = NULL;
	struct kymo_ring_packet packet;

	for (uint32_t i = 0; i < ring->n_subbuffers && !error && kymo_ring_copy(&reader, room, &packet); i++)
		error = append_packet(output, position, cpu, &packet);
	return error;
}

void kymo_trace_leave(struct kymo_trace *output, struct kymo_trace_position *position)
{
	if (position->stream)
		output->streams.items[position->stream - 1].is_taken = false;
	position->stream = 0;
	position->skipped = 0;
}

struct kymo_error *kymo_trace_finish(struct kymo_trace *output, struct kymo_trace_position *position,
				     const struct kymo_ring *ring, uint32_t cpu, uint64_t tsc)
{
	const struct kymo_trace_stream *stream = position->stream ? &output->streams.items[position->stream - 1] : NULL;
	uint64_t written = stream ? stream->lost - stream->first_lost : 0;
	struct kymo_ring_packet packet = {
		.records = ring->data,
		.tsc_begin = stream ? stream->last_tsc : tsc,
		.tsc_end = tsc,
		.lost = kymo_ring_lost(ring),
		.sequence = position->skipped + (stream ? stream->sequence - stream->first_sequence : 0),
	};
	struct kymo_error *error = packet.lost > written ? append_packet(output, position, cpu, &packet) : NULL;

	kymo_trace_leave(output, position);
	return error;
}

struct kymo_error *kymo_trace_vforks(struct kymo_trace *output, uint64_t lost, uint64_t since, uint64_t tsc)
{
	const struct kymo_trace_stream *stream =
		output->vforks.stream ? &output->streams.items[output->vforks.stream - 1] : NULL;
	struct kymo_ring_packet packet = {
		.records = (const uint8_t *)"",
		.tsc_begin = stream ? stream->last_tsc : since,
		.tsc_end = tsc,
		.lost = lost,
		.sequence = stream ? stream->sequence : 0,
	};

	if (lost <= (stream ? stream->lost : 0))
		return NULL;
	output->vforks.ring = KYMO_TRACE_VFORKS;
	return append_packet(output, &output->vforks, KYMO_CTF_NO_CPU, &packet);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

struct kymo_error *kymo_trace_keep(struct kymo_trace *output, uint64_t size)
{
	return kymo_kept_create(size, &output->kept);
}

struct kymo_error *kymo_trace_write_kept(const struct kymo_trace *output, const struct kymo_trace *to,
					 uint64_t *bytes_ret)
{
	struct kymo_ctf_stream **files = calloc(output->streams.n + 1, sizeof(*files));
	struct kymo_error *error = files ? NULL : &kymo_error_no_memory;

	*bytes_ret = 0;
	for (const struct kymo_kept_packet *packet = kymo_kept_first(output->kept); packet && !error;
	     packet = kymo_kept_next(output->kept, packet)) {
		struct kymo_ctf_stream **file = &files[packet->stream];

		if (!*file)
			error = make_file(to, &output->streams.items[packet->stream], packet->begin, file);
		if (!error)
			error = kymo_ctf_stream_append(*file, kymo_kept_records(packet), packet->size, packet->begin,
						       packet->end, packet->lost, packet->sequence);
		*bytes_ret += packet->size;
	}
	for (size_t i = 0; files && i < output->streams.n; i++)
		kymo_ctf_stream_destroy(files[i]);
	free(files);
	return error;
}

struct kymo_error *kymo_trace_metadata(struct kymo_trace *output)
{
	return kymo_ctf_write_metadata(output->dirfd, &output->trace);
}
