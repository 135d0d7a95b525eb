#include "trace/packed.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"
#include "wire/packed.h"

/* Bytes after the header of a record in a ring: a stack is a copy there, after the stack pointer of a call. */
static bool ring_body(const struct kymo_ctf_event *event, const uint8_t *body, uint64_t left, uint32_t *ret)
{
	const uint32_t pointer = event->has_stack_pointer ? sizeof(uint64_t) : 0;
	uint32_t size;
	uint16_t copied;

	if (!event->has_stack)
		return kymo_ctf_body_size(event, body, left, ret);
	if (!kymo_ctf_size_before_stack(event, body, left, &size) || left - size < pointer + sizeof(copied))
		return false;
	memcpy(&copied, body + size + pointer, sizeof(copied));
	*ret = size + pointer + (uint32_t)sizeof(copied) + copied;
	return *ret <= left;
}

static void put_header(uint8_t *to, uint32_t id, uint64_t stamp, int32_t tid)
{
	const uint64_t header = id | stamp << KYMO_EVENT_ID_BITS;

	memcpy(to, &header, sizeof(header));
	memcpy(to + KYMO_EVENT_TID_OFFSET, &tid, sizeof(tid));
}

uint64_t kymo_packed_to_plain(const struct kymo_trace *output, const uint8_t *records, uint64_t size, uint64_t begin,
			      kymo_packed_take *take, void *data, uint8_t *to)
{
	struct kymo_packed packed = kymo_packed_begin(begin);
	uint64_t at = 0, n = 0;
	size_t header;
	uint32_t id;

	while ((header = kymo_packed_read(&packed, records + at, size - at, &id)) != 0) {
		const struct kymo_ctf_event *event = kymo_trace_event(output, id);
		uint32_t body;

		if (!id) {
			at += header;
			continue;
		}
		if (!packed.has_thread || !event || !ring_body(event, records + at + header, size - at - header, &body))
			break;
		at += header + body;
		if (take && take(data, event, packed.tid, records + at - body))
			continue;
		put_header(to + n, id, packed.stamp, packed.tid);
		memcpy(to + n + KYMO_EVENT_ARGS_OFFSET, records + at - body, body);
		n += KYMO_EVENT_ARGS_OFFSET + body;
	}
	if (at == size)
		return n;
	put_header(to + n, KYMO_EVENT_ID_MAX, packed.stamp, packed.tid);
	memcpy(to + n + KYMO_EVENT_ARGS_OFFSET, records + at, size - at);
	return n + KYMO_EVENT_ARGS_OFFSET + size - at;
}

struct kymo_error *kymo_packed_from_plain(const struct kymo_trace *output, const uint8_t *records, uint64_t size,
					  uint64_t begin, uint8_t **ret, uint64_t *size_ret, uint64_t *n_ret)
{
	/* The least plain record is KYMO_EVENT_ARGS_OFFSET bytes, and the most headers are less than twice that. What
	 * is no record stays as it is, after one header more. */
	uint8_t *to = malloc(2 * size + KYMO_PACKED_HEADERS_MAX);
	struct kymo_packed packed = { .has_thread = false };
	uint64_t at = 0, n = 0, n_records = 0, stamp = begin;
	uint32_t id = 0;

	if (!to)
		return &kymo_error_no_memory;
	while (size - at >= KYMO_EVENT_ARGS_OFFSET) {
		const int unused = 64 - KYMO_EVENT_TIME_BITS;
		const struct kymo_ctf_event *event;
		uint64_t header;
		uint32_t whole;
		int32_t tid;

		memcpy(&header, records + at, sizeof(header));
		memcpy(&tid, records + at + KYMO_EVENT_TID_OFFSET, sizeof(tid));
		id = (uint32_t)(header & KYMO_EVENT_ID_MAX);
		stamp += (uint64_t)((int64_t)(((header >> KYMO_EVENT_ID_BITS) - stamp) << unused) >> unused);
		event = kymo_trace_event(output, id);
		whole = event ? kymo_ctf_record_size(event, records + at, size - at) : 0;
		if (!whole)
			break;
		n += kymo_packed_write(&packed, id, tid, stamp, to + n);
		memcpy(to + n, records + at + KYMO_EVENT_ARGS_OFFSET, whole - KYMO_EVENT_ARGS_OFFSET);
		n += whole - KYMO_EVENT_ARGS_OFFSET;
		at += whole;
		n_records++;
	}
	if (at < size) { /* no record of ours: readers will tell */
		n += kymo_packed_write(&packed, KYMO_EVENT_ID_MAX, packed.tid, stamp, to + n);
		at += id == KYMO_EVENT_ID_MAX ? KYMO_EVENT_ARGS_OFFSET : 0; /* the header of kymo_packed_to_plain() */
		memcpy(to + n, records + at, size - at);
		n += size - at;
	}
	*ret = to;
	*size_ret = n;
	*n_ret = n_records;
	return NULL;
}

uint64_t kymo_packed_count(const struct kymo_trace *output, const uint8_t *records, uint64_t size, uint64_t max,
			   uint64_t *at_ret)
{
	struct kymo_packed packed = kymo_packed_begin(0);
	uint64_t at = 0, n = 0;

	*at_ret = 0;
	while (n < max && at < size) {
		const struct kymo_ctf_event *event;
		uint32_t id, body;
		const size_t header = kymo_packed_read(&packed, records + at, size - at, &id);

		at += header;
		if (header && !id)
			continue;
		event = header ? kymo_trace_event(output, id) : NULL;
		if (!event || !kymo_ctf_body_size(event, records + at, size - at, &body))
			break;
		at += body;
		n++;
		*at_ret = at;
	}
	return n;
}
