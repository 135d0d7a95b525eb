/* Headers of packed records (event.h), read one after another. */
#ifndef KYMO_WIRE_PACKED_H
#define KYMO_WIRE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/event.h"

/* What a packet has said up to some record. */
struct kymo_packed {
	uint64_t stamp;        /* of the last record */
	uint64_t thread_stamp; /* of the last thread's record; before the first, where the packet begins */
	int32_t tid;
	bool has_thread;
};

/* At the beginning of a packet, of which that is the stamp. */
static inline struct kymo_packed kymo_packed_begin(uint64_t begin)
{
	return (struct kymo_packed){ .stamp = begin, .thread_stamp = begin };
}

/* The least stamp not before `since` of which these are the low bits. */
static inline uint64_t kymo_packed_extend(uint64_t since, uint64_t low, unsigned int bits)
{
	return since + ((low - since) & ((UINT64_C(1) << bits) - 1));
}

/* The stamp of a thread's record, of which these are the low bits: the nearest to `near`, before it or after. */
static inline uint64_t kymo_packed_extend_thread(uint64_t near, uint64_t low)
{
	const int unused = 64 - KYMO_PACKED_THREAD_TIME_BITS;

	return near + (uint64_t)((int64_t)((low - near) << unused) >> unused);
}

/*
 * Read the header at `at`, of which `left` bytes are there. Returns its size, 0 where it is not all there; `packed`
 * goes on then. `id_ret` is the event's id, or 0: it was a thread's record, and the next header comes after it.
 */
static inline size_t kymo_packed_read(struct kymo_packed *packed, const uint8_t *at, size_t left, uint32_t *id_ret)
{
	uint32_t first;
	uint64_t word;

	if (left < KYMO_PACKED_COMPACT_SIZE)
		return 0;
	memcpy(&first, at, sizeof(first));
	*id_ret = first & KYMO_PACKED_KIND_MASK;
	if (__builtin_expect(*id_ret != KYMO_PACKED_THREAD && *id_ret != KYMO_PACKED_WIDE, 1)) {
		packed->stamp = kymo_packed_extend(packed->thread_stamp, first >> KYMO_PACKED_KIND_BITS,
						   KYMO_PACKED_COMPACT_TIME_BITS);
		return KYMO_PACKED_COMPACT_SIZE;
	}
	if (left < (*id_ret == KYMO_PACKED_WIDE ? KYMO_PACKED_WIDE_SIZE : KYMO_PACKED_THREAD_SIZE))
		return 0;
	memcpy(&word, at, sizeof(word));
	/* The first bytes may have changed meanwhile, where a target shares them. */
	if (*id_ret == KYMO_PACKED_WIDE) {
		*id_ret = word >> KYMO_PACKED_KIND_BITS & KYMO_EVENT_ID_MAX;
		if (!*id_ret)
			*id_ret = KYMO_EVENT_ID_MAX + 1; /* no event's, and no thread's record */
		packed->stamp = kymo_packed_extend(packed->thread_stamp, word >> (64 - KYMO_PACKED_WIDE_TIME_BITS),
						   KYMO_PACKED_WIDE_TIME_BITS);
		return KYMO_PACKED_WIDE_SIZE;
	}
	packed->thread_stamp = kymo_packed_extend_thread(packed->thread_stamp, word >> KYMO_PACKED_KIND_BITS);
	packed->stamp = packed->thread_stamp;
	packed->has_thread = true;
	memcpy(&packed->tid, at + KYMO_PACKED_TID_OFFSET, sizeof(packed->tid));
	return KYMO_PACKED_THREAD_SIZE;
}

#define KYMO_PACKED_HEADERS_MAX (KYMO_PACKED_THREAD_SIZE + KYMO_PACKED_WIDE_SIZE)

/* Write the headers of a record, at most KYMO_PACKED_HEADERS_MAX bytes: a thread's, if it takes one, and its own.
 * Returns their size. */
static inline size_t kymo_packed_write(struct kymo_packed *packed, uint32_t id, int32_t tid, uint64_t stamp,
				       uint8_t *to)
{
	const bool is_wide = id >= KYMO_PACKED_WIDE;
	const unsigned int bits = is_wide ? KYMO_PACKED_WIDE_TIME_BITS : KYMO_PACKED_COMPACT_TIME_BITS;
	uint64_t word;
	size_t n = 0;

	if (!packed->has_thread || packed->tid != tid || (stamp - packed->thread_stamp) >> bits) {
		word = stamp << KYMO_PACKED_KIND_BITS;
		memcpy(to, &word, sizeof(word));
		memcpy(to + KYMO_PACKED_TID_OFFSET, &tid, sizeof(tid));
		n = KYMO_PACKED_THREAD_SIZE;
		*packed = (struct kymo_packed){ .thread_stamp = stamp, .tid = tid, .has_thread = true };
	}
	packed->stamp = stamp;
	word = is_wide ? KYMO_PACKED_WIDE | (uint64_t)id << KYMO_PACKED_KIND_BITS |
				 stamp << (64 - KYMO_PACKED_WIDE_TIME_BITS)
		       : id | stamp << KYMO_PACKED_KIND_BITS;
	memcpy(to + n, &word, is_wide ? KYMO_PACKED_WIDE_SIZE : KYMO_PACKED_COMPACT_SIZE);
	return n + (is_wide ? KYMO_PACKED_WIDE_SIZE : KYMO_PACKED_COMPACT_SIZE);
}

#endif
