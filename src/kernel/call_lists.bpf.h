/*
 * Copies that may be large, or lead to others, in memory of the CPU's own. Functions that are not static are verified
 * once, for whatever they are given, and not on each path that leads to them. The position is in the sample.
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_LISTS_BPF_H
#define KYMO_KERNEL_CALL_LISTS_BPF_H

#include "kernel/call_copies.bpf.h"

struct kernel_call_rows rows SEC(".bss.rows");

struct room {
	union {
		struct kernel_call sample;
		uint8_t bytes[KERNEL_CALL_SCRATCH];
	};
};

/* NULL: there is none. The bound is looked at where the number is used: elsewhere compilers would check a copy of it,
 * of which the verifiers of older kernels don't know that it is one, or use it before. */
static __always_inline const struct kernel_call_row *row_at(uint64_t i)
{
	barrier_var(i);
	if (i >= KERNEL_CALL_TABLES * KERNEL_CALL_NUMBERS)
		return NULL;
	barrier_var(i);
	return (const struct kernel_call_row *)rows.rows + i;
}

/* `size` bytes that are looked at, too; NULL: they are not there. */
static __always_inline const uint64_t *copy_fields(struct kernel_call *sample, uint64_t *position, uint64_t address,
						   uint64_t size)
{
	struct kymo_copied *piece;

	if (*position > ROOM)
		return NULL;
	piece = piece_at(sample, *position);
	if (!copy_piece(sample, *position, address, size, false))
		return NULL;
	*position = behind(*position, size);
	return (void *)(piece + 1);
}

/* Of two pages: a copy of more than a page that lies in three is incomplete. */
static __always_inline bool copy_at_most(struct kernel_call *sample, uint64_t *position, uint64_t address, uint64_t n,
					 uint64_t max)
{
	return copy_bytes(sample, position, address, n < max ? n : max, 2, false);
}

/* Whether it could be copied, as all of these. */
__noinline int copy_element(struct room *room, uint64_t address, uint64_t max)
{
	const uint64_t *fields;
	uint64_t position;
	bool is_done;

	if (!room)
		return false;
	position = room->sample.position;
	fields = copy_fields(&room->sample, &position, address, 16);
	is_done = fields && copy_at_most(&room->sample, &position, fields[0], fields[1], max);
	room->sample.position = position;
	return is_done;
}

static __always_inline bool copy_vector(struct room *room, uint64_t address, uint64_t n, uint64_t max)
{
	for (uint32_t i = 0; address >= KYMO_COPY_LOWEST && i < KYMO_COPY_ELEMENTS && i < n; i++)
		if (!copy_element(room, address + 16 * i, max))
			return false;
	return true;
}

static __always_inline bool copy_message(struct room *room, uint64_t address, uint64_t max)
{
	uint64_t position = room->sample.position, vector, n;
	const uint64_t *fields;
	bool is_done;

	if (address < KYMO_COPY_LOWEST)
		return true;
	fields = copy_fields(&room->sample, &position, address, KYMO_COPY_MESSAGE_SIZE);
	if (!fields)
		return false;
	vector = fields[2];
	n = fields[3];
	is_done = copy_at_most(&room->sample, &position, fields[0], (uint32_t)fields[1], KYMO_COPY_NAME_MAX) &&
		  copy_at_most(&room->sample, &position, fields[4], fields[5], KYMO_COPY_CONTROL_MAX);
	room->sample.position = position;
	return is_done && copy_vector(room, vector, n, max);
}

/* 1: go on, 0: that was the last one, -1: it could not be copied. */
__noinline int copy_string_of_list(struct room *room, uint64_t address, uint64_t max)
{
	uint64_t position, string = 0;
	const uint64_t *fields;
	int next = -1;

	if (!room)
		return -1;
	position = room->sample.position;
	fields = copy_fields(&room->sample, &position, address, sizeof(string));
	if (fields) {
		string = fields[0];
		next = !string ? 0 : !max || copy_string(&room->sample, &position, string, max, false) ? 1 : -1;
	}
	room->sample.position = position;
	return next;
}

static __always_inline bool copy_strings(struct room *room, uint64_t address, uint64_t max)
{
	int next = 1;

	for (uint32_t i = 0; address >= KYMO_COPY_LOWEST && i <= KYMO_COPY_ELEMENTS && next > 0; i++)
		next = copy_string_of_list(room, address + 8 * i, i < KYMO_COPY_ELEMENTS ? max : 0);
	return next >= 0;
}

__noinline int copy_list(struct room *room, uint32_t what, uint64_t address, uint64_t max)
{
	if (!room)
		return false;
	if (what == KYMO_COPY_MESSAGE)
		return copy_message(room, address, max);
	return copy_strings(room, address, max);
}

/* Of more than a page. */
__noinline int copy_pages(struct room *room, uint64_t address, uint64_t size)
{
	uint64_t position;
	bool is_done;

	if (!room)
		return false;
	position = room->sample.position;
	is_done = copy_bytes(&room->sample, &position, address, size, PAGES_MAX, false);
	room->sample.position = position;
	return is_done;
}

static __always_inline bool make_copy(struct room *room, const struct kernel_call_copy *copy)
{
	struct kernel_call *sample = &room->sample;
	uint64_t address, n, position = sample->position;
	bool is_done = true;

	if (!find_range(sample, copy, &address, &n, &is_done))
		return is_done;
	if (copy->what == KYMO_COPY_VECTOR)
		return copy_vector(room, address, n, copy->max);
	if (copy->what > KYMO_COPY_VECTOR)
		return copy_list(room, copy->what, address, copy->max);
	if (copy->what == KYMO_COPY_BYTES && n > KYMO_PAGE_SIZE)
		return copy_pages(room, address, n);
	is_done = copy->what == KYMO_COPY_BYTES ? copy_bytes(sample, &position, address, n, 2, false)
						: copy_string(sample, &position, address, copy->max, false);
	sample->position = position;
	return is_done;
}

__noinline int make_copy_of(struct room *room, uint64_t row_i, uint32_t i)
{
	const struct kernel_call_row *row = row_at(row_i);

	if (room && row && i < KERNEL_CALL_COPIES_MAX && !make_copy(room, &row->copies[i]))
		room->sample.is_incomplete = 1;
	return 0;
}

/* Most calls have one copy: that one is made without a call of a function, which costs some ns. */
static __always_inline void make_copies(struct room *room, const struct kernel_call_row *row, uint64_t row_i)
{
	if (row->n && !make_copy(room, &row->copies[0]))
		room->sample.is_incomplete = 1;
	for (uint32_t i = 1; i < KERNEL_CALL_COPIES_MAX && i < row->n; i++)
		make_copy_of(room, row_i, i);
}

#endif
