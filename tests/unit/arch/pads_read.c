/* What pads have written, read back: every record is looked at as a reader of packets does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "pads.h"

#include <string.h>

#include "base/cleanup.h"

static size_t size_of_args(const struct kymo_pad_event *event, const uint8_t *bytes, uint64_t left)
{
	size_t size = kymo_pad_has_faults(event->args, event->n_args);

	for (size_t i = 0; i < event->n_args; i++) {
		uint16_t length = 0;

		size += kymo_type_size(event->args[i].type);
		assert_true(size <= left);
		if (event->args[i].type == KYMO_TYPE_STRING)
			length = (uint16_t)strnlen((const char *)bytes + size - 1, left - size + 1);
		else if (event->args[i].type == KYMO_TYPE_BYTES)
			memcpy(&length, bytes + size - sizeof(length), sizeof(length));
		size += length * kymo_type_size(kymo_element_type(event->args[i].array_of));
	}
	return size;
}

/* Of the record whose header ends at `body`; all of it is there. */
static size_t size_of_rest(const struct world *world, uint32_t id, const uint8_t *body, uint64_t left)
{
	size_t size = world->sizes[id];
	uint16_t length;

	if (world->varying[id])
		size = size_of_args(world->varying[id], body, left);
	if (world->sizes[id] == LENGTH_FIRST) {
		assert_true(left >= sizeof(length));
		memcpy(&length, body, sizeof(length));
		assert_true(length >= sizeof(length));
		size = length;
	}
	assert_true(left >= size);
	return size;
}

static uint64_t load(const uint8_t *at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, at, size);
	return value;
}

/* The least stamp that is not before `since`, of which these are the low bits. */
static uint64_t extend(uint64_t since, uint64_t low, unsigned int bits)
{
	return since + ((low - since) & ((UINT64_C(1) << bits) - 1));
}

/* The stamp of a thread's record: the nearest one with these low bits. */
static uint64_t extend_thread(uint64_t near, uint64_t low)
{
	const uint64_t half = UINT64_C(1) << (KYMO_PACKED_THREAD_TIME_BITS - 1);

	return extend(near - half, low, KYMO_PACKED_THREAD_TIME_BITS);
}

/* What is known of a packet up to here. */
struct known {
	uint64_t stamp, thread_stamp;
	int32_t tid; /* 0: none yet */
};

/* A header, of a record or a thread, which is told by its id, 0. Its size. */
static size_t read_header(const uint8_t *at, uint64_t left, struct known *known, uint32_t *id_ret)
{
	const unsigned int kind = *at & KYMO_PACKED_KIND_MASK;
	const size_t size = kind == KYMO_PACKED_THREAD ? KYMO_PACKED_THREAD_SIZE
			    : kind == KYMO_PACKED_WIDE ? KYMO_PACKED_WIDE_SIZE
						       : KYMO_PACKED_COMPACT_SIZE;

	assert_true(left >= size);
	if (kind == KYMO_PACKED_THREAD) {
		known->thread_stamp = extend_thread(known->thread_stamp, load(at, 8) >> KYMO_PACKED_KIND_BITS);
		known->stamp = known->thread_stamp;
		known->tid = (int32_t)load(at + KYMO_PACKED_TID_OFFSET, 4);
		*id_ret = 0;
		return size;
	}
	assert_true(known->tid != 0);
	if (kind == KYMO_PACKED_WIDE) {
		*id_ret = load(at, 8) >> KYMO_PACKED_KIND_BITS & KYMO_EVENT_ID_MAX;
		known->stamp = extend(known->thread_stamp, load(at, 8) >> (64 - KYMO_PACKED_WIDE_TIME_BITS),
				      KYMO_PACKED_WIDE_TIME_BITS);
	} else {
		*id_ret = kind;
		known->stamp = extend(known->thread_stamp, load(at, 4) >> KYMO_PACKED_KIND_BITS,
				      KYMO_PACKED_COMPACT_TIME_BITS);
	}
	return size;
}

static void read_packet(struct world *world, uint32_t ring, const struct kymo_ring_packet *packet)
{
	struct known known = { .stamp = packet->tsc_begin, .thread_stamp = packet->tsc_begin };

	assert_true(packet->tsc_begin >= world->last_stamp[ring]);
	world->last_stamp[ring] = packet->tsc_begin;
	for (uint64_t at = 0; at < packet->size;) {
		struct record record = { .ring = ring };

		at += read_header(packet->records + at, packet->size - at, &known, &record.id);
		assert_true(known.stamp >= world->last_stamp[ring] && known.stamp <= packet->tsc_end);
		world->last_stamp[ring] = known.stamp;
		if (!record.id) {
			assert_true(at < packet->size); /* it is never the last one */
			world->n_threads++;
			continue;
		}
		assert_true(record.id < kymo_countof(world->sizes) && world->is_known[record.id]);
		record.tid = known.tid;
		record.stamp = known.stamp;
		record.size = size_of_rest(world, record.id, packet->records + at, packet->size - at);
		memcpy(record.args, packet->records + at,
		       record.size < sizeof(record.args) ? record.size : sizeof(record.args));
		assert_true(kymo_vec_push(&world->records, record));
		if (world->on_record)
			world->on_record(world->data, &record, packet->records + at);
		at += record.size;
	}
	world->last_stamp[ring] = packet->tsc_end;
}

void world_read(struct world *world)
{
	struct kymo_ring_packet packet;

	for (uint32_t i = 0; i < world->n_rings; i++) {
		while (kymo_ring_peek(&world->readers[i], &packet)) {
			read_packet(world, i, &packet);
			kymo_ring_release(&world->readers[i]);
		}
	}
}

void world_read_all(struct world *world)
{
	for (uint32_t i = 0; i < world->n_rings; i++)
		kymo_ring_finish(&world->readers[i], tsc());
	world_read(world);
}

void world_forget(struct world *world)
{
	world->records.n = 0;
}

uint64_t world_lost(const struct world *world)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < world->n_rings; i++)
		lost += kymo_ring_lost(&world->readers[i]);
	return lost;
}
