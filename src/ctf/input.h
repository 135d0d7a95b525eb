/*
 * One stream file as it is read: a window of the file, the packet at hand, and records decoded from it.
 *
 * The file may be damaged, hostile, and may change while it is read, so it is copied into the window with pread() and
 * never mapped: every length is checked against what has really been copied.
 */
#ifndef KYMO_CTF_INPUT_H
#define KYMO_CTF_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/vec.h"
#include "ctf/packet.h"
#include "ctf/reader.h"
#include "ctf/trace.h"
#include "wire/packed.h"

/* How a record of one event id is laid out. */
struct layout {
	const struct kymo_ctf_event *event; /* NULL: no such id */
	uint32_t size;                      /* the least */
	uint8_t n_fields;
	bool has_faults, varies;
	uint8_t types[KYMO_EVENT_MAX_ARGS];
};

/* What all inputs of a reader add to. */
struct findings {
	KYMO_VEC(struct kymo_ctf_loss) losses;
	size_t n_sorted; /* losses that are in order already */
	KYMO_VEC(char *) warnings;
	uint64_t damaged_since; /* TSC; UINT64_MAX: nothing is damaged */
	uint64_t whole_since; /* TSC of the latest packet that is the first one left of its stream; 0: no stream's first
				 packet is missing */
	struct kymo_error *error; /* the first one that ends reading */
};

struct input {
	char *name; /* safe to print */
	int fd;
	uint64_t size;   /* of the file when it was opened: a recording that goes on may write as fast as it is read */
	uint8_t *window; /* made at the first read */
	size_t window_size;
	uint64_t window_offset; /* in the file, of the window's first byte */
	size_t filled;          /* bytes in the window */
	size_t at;              /* next byte to decode */
	size_t limit;           /* end of what may be decoded: of the window or of the packet's content */
	uint64_t packet_begin, content_end, packet_end; /* in the file */
	uint64_t tsc;                                   /* the last stamp of the packet */
	struct kymo_packed packed;                      /* of a packet of packed records */
	struct kymo_ctf_packet packet;                  /* valid if n_packets */
	uint64_t n_packets;
	bool has_content; /* one of the packets up to this one has more than a header */
	bool in_packet, ended;
	bool is_packed; /* the trace's records are */
};

/* Takes over `name` and `fd`. */
void kymo_input_init(struct input *input, char *name, int fd, uint64_t size, size_t window_size);
void kymo_input_deinit(struct input *input);

/* Check the header of the first packet, without moving. NULL also for a file that is shorter than that. */
struct kymo_error *kymo_input_check(struct input *input, const uint8_t *uuid);

/* Called where no whole record of a known id lies at `at`: read more, go to the next packet, or report what is damaged.
 * True: try again. False: the stream has ended, or findings->error is set. */
bool kymo_input_advance(struct input *input, const uint8_t *uuid, const struct layout *layouts, uint32_t n_layouts,
			struct findings *findings);

/* A stamp of 44 bits as the full one that is nearest to where the packet is. Within a packet stamps run forward; one
 * that would run out of the packet is rather a step back (two threads of a CPU, one interrupted between stamp and
 * room). */
static inline uint64_t kymo_input_extend(const struct input *input, uint64_t stamp)
{
	const uint64_t span = 1ull << KYMO_EVENT_TIME_BITS;
	uint64_t tsc = (input->tsc & ~(span - 1)) | stamp;

	if (tsc < input->tsc)
		tsc += span;
	if (__builtin_expect(tsc > input->packet.timestamp_end, 0) && tsc >= span) {
		uint64_t back = tsc - span, begin = input->packet.timestamp_begin;

		if (back >= begin || begin - back < tsc - input->packet.timestamp_end)
			tsc = back;
	}
	return tsc;
}

static inline uint64_t kymo_input_value(const uint8_t *at, uint8_t type)
{
	uint64_t value = 0;

	switch (type) {
	case KYMO_TYPE_S8:
		return (uint64_t)(int64_t)(int8_t)*at;
	case KYMO_TYPE_S16: {
		int16_t narrow;

		memcpy(&narrow, at, sizeof(narrow));
		return (uint64_t)(int64_t)narrow;
	}
	case KYMO_TYPE_S32: {
		int32_t narrow;

		memcpy(&narrow, at, sizeof(narrow));
		return (uint64_t)(int64_t)narrow;
	}
	case KYMO_TYPE_U8:
	case KYMO_TYPE_X8:
		return *at;
	case KYMO_TYPE_U16:
	case KYMO_TYPE_X16:
		memcpy(&value, at, 2);
		return value;
	case KYMO_TYPE_U32:
	case KYMO_TYPE_X32:
	case KYMO_TYPE_F32:
		memcpy(&value, at, 4);
		return value;
	default:
		memcpy(&value, at, 8);
		return value;
	}
}

/* Of a record whose header ends at `body`; whether it is all there. */
static inline bool kymo_input_body_size(const struct layout *layout, const uint8_t *body, size_t left, uint32_t *ret)
{
	if (__builtin_expect(layout->varies, 0))
		return kymo_ctf_body_size(layout->event, body, left, ret);
	*ret = layout->size - KYMO_EVENT_ARGS_OFFSET;
	return *ret <= left;
}

/* Bytes of the record at `at`, 0 where `left` bytes don't hold all of it. */
static inline size_t kymo_input_size(const struct layout *layout, const uint8_t *at, size_t left)
{
	if (__builtin_expect(layout->varies, 0))
		return kymo_ctf_record_size(layout->event, at, left);
	return layout->size <= left ? layout->size : 0;
}

/* What comes after the header, at `at`; strings and bytes end within the record. */
static inline void kymo_input_decode_body(const struct input *input, const struct layout *layout, const uint8_t *at,
					  struct kymo_ctf_record *ret)
{
	ret->event = layout->event;
	ret->tsc = input->tsc;
	ret->cpu = input->packet.cpu_id;
	ret->faults = layout->has_faults ? *at : 0;
	at += layout->has_faults;
	for (unsigned int i = 0; i < layout->n_fields; i++) {
		if (layout->types[i] == KYMO_TYPE_STRING) {
			ret->values[i] = (uintptr_t)at;
			at += strlen((const char *)at) + 1;
			continue;
		}
		if (layout->types[i] == KYMO_TYPE_BYTES) {
			uint16_t length;

			memcpy(&length, at, sizeof(length));
			ret->values[i] = (uintptr_t)at;
			at += sizeof(length) + (size_t)length * kymo_ctf_element_size(&layout->event->fields[i]);
			continue;
		}
		ret->values[i] = kymo_input_value(at, layout->types[i]);
		at += 1u << (layout->types[i] & 3);
	}
}

/* `size` is the record's. */
static inline void kymo_input_decode(struct input *input, const struct layout *layout, size_t size, uint64_t header,
				     struct kymo_ctf_record *ret)
{
	const uint8_t *at = input->window + input->at;

	input->tsc = kymo_input_extend(input, header >> KYMO_EVENT_ID_BITS);
	memcpy(&ret->tid, at + KYMO_EVENT_TID_OFFSET, sizeof(ret->tid));
	kymo_input_decode_body(input, layout, at + KYMO_EVENT_ARGS_OFFSET, ret);
	input->at += size;
}

/* The next packed record, with those of threads before it. False: no whole one of a known id, after a thread's, is in
 * the window. */
static inline bool kymo_input_take_packed(struct input *input, const struct layout *layouts, uint32_t n_layouts,
					  struct kymo_ctf_record *ret)
{
	while (input->at < input->limit) { /* else there may be no window yet */
		struct kymo_packed packed = input->packed;
		const uint8_t *at = input->window + input->at;
		const size_t left = input->limit - input->at;
		uint32_t id, body;
		const size_t header = kymo_packed_read(&packed, at, left, &id);

		if (!header)
			return false;
		if (!id) {
			input->packed = packed;
			input->at += header;
			continue;
		}
		if (!packed.has_thread || id >= n_layouts || !layouts[id].event ||
		    !kymo_input_body_size(&layouts[id], at + header, left - header, &body))
			return false;
		input->packed = packed;
		input->tsc = packed.stamp;
		ret->tid = packed.tid;
		kymo_input_decode_body(input, &layouts[id], at + header, ret);
		input->at += header + body;
		return true;
	}
	return false;
}

/* The next record of the stream. False at its end and on an error (findings->error). */
static inline bool kymo_input_next(struct input *input, const uint8_t *uuid, const struct layout *layouts,
				   uint32_t n_layouts, struct findings *findings, struct kymo_ctf_record *ret)
{
	do {
		size_t left = input->limit - input->at, size;
		uint64_t header;
		uint32_t id;

		if (input->is_packed) {
			if (kymo_input_take_packed(input, layouts, n_layouts, ret))
				return true;
			continue;
		}
		if (left < KYMO_EVENT_ARGS_OFFSET)
			continue;
		memcpy(&header, input->window + input->at, sizeof(header));
		id = header & KYMO_EVENT_ID_MAX;
		if (id >= n_layouts || !layouts[id].event)
			continue;
		size = kymo_input_size(&layouts[id], input->window + input->at, left);
		if (size) {
			kymo_input_decode(input, &layouts[id], size, header, ret);
			return true;
		}
	} while (kymo_input_advance(input, uuid, layouts, n_layouts, findings));
	return false;
}

#endif
