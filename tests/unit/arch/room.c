#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "room.h"

enum { LOCKED = 1, UNSTEADY = 2, CHANGED = 4, WANTED = 8 };

static bool has_flag(const struct room *room, uint64_t vaddr, size_t size, uint8_t flag)
{
	for (uint64_t at = vaddr; at < vaddr + size; at++) {
		if (at >= room->low && at < room->high && (room->flags[at - room->low] & flag))
			return true;
	}
	return false;
}

static void look(void *data, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	struct room *room = data;

	for (size_t i = 0; i < size; i++) {
		if (has_flag(room, vaddr + i, 1, CHANGED))
			bytes[i] = room->now[vaddr + i - room->low];
	}
}

static bool is_locked(void *data, uint64_t vaddr, size_t size)
{
	struct room *room = data;

	for (uint64_t at = vaddr; at < vaddr + size; at++) {
		if (has_flag(room, at, 1, LOCKED) || (at != room->site && has_flag(room, at, 1, WANTED)))
			return true;
	}
	return false;
}

static bool is_unsteady(void *data, uint64_t vaddr, size_t size)
{
	return has_flag(data, vaddr, size, UNSTEADY);
}

/* Index of the first one that ends after `at`. */
static size_t taken_at(const struct room *room, int64_t at)
{
	size_t low = 0, high = room->n_taken;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (room->taken[middle].high <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(struct room *room, size_t i, int64_t low, int64_t high)
{
	if (room->n_taken == room->max_taken) {
		room->max_taken = room->max_taken * 2 + 64;
		room->taken = realloc(room->taken, room->max_taken * sizeof(*room->taken));
		assert_non_null(room->taken);
	}
	memmove(room->taken + i + 1, room->taken + i, (room->n_taken - i) * sizeof(*room->taken));
	room->taken[i] = (struct room_taken){ low, high };
	room->n_taken++;
}

static uint64_t reserve(void *data, uint64_t low, uint64_t high, size_t size)
{
	struct room *room = data;

	assert_true(high - low <= UINT32_MAX);
	for (size_t i = 0; i < room->n_free; i++) {
		int64_t at = (int64_t)low, last = (int64_t)high;

		at = at > room->free[i].low ? at : room->free[i].low;
		last = last < room->free[i].high - (int64_t)size ? last : room->free[i].high - (int64_t)size;
		for (size_t k = taken_at(room, at); at <= last; at = room->taken[k++].high) {
			if (k == room->n_taken || room->taken[k].low >= at + (int64_t)size) {
				insert(room, k, at, at + (int64_t)size);
				return (uint64_t)at;
			}
		}
	}
	return 0;
}

static void release(void *data, uint64_t vaddr, size_t size)
{
	struct room *room = data;
	size_t i = taken_at(room, (int64_t)vaddr);

	assert_true(i < room->n_taken && room->taken[i].low == (int64_t)vaddr &&
		    room->taken[i].high == (int64_t)vaddr + (int64_t)size);
	memmove(room->taken + i, room->taken + i + 1, (--room->n_taken - i) * sizeof(*room->taken));
}

void room_init(struct room *room, const struct kymo_module_code *code)
{
	*room = (struct room){
		.ops = { .data = room,
			 .look = look,
			 .is_locked = is_locked,
			 .is_unsteady = is_unsteady,
			 .reserve = reserve,
			 .release = release },
		.low = UINT64_MAX,
	};
	for (size_t i = 0; i < code->n_text; i++) {
		const struct kymo_span *span = &code->text[i];

		room->low = span->vaddr < room->low ? span->vaddr : room->low;
		room->high = span->vaddr + span->size > room->high ? span->vaddr + span->size : room->high;
	}
	room->now = calloc(1, room->high - room->low + 1);
	room->flags = calloc(1, room->high - room->low + 1);
	assert_true(room->now && room->flags);
	for (size_t i = 0; i < code->n_text; i++)
		memcpy(room->now + (code->text[i].vaddr - room->low), code->text[i].bytes, code->text[i].size);
}

void room_deinit(struct room *room)
{
	free(room->now);
	free(room->flags);
	free(room->taken);
}

void room_free(struct room *room, int64_t low, int64_t high)
{
	assert_true(room->n_free < sizeof(room->free) / sizeof(room->free[0]));
	room->free[room->n_free++] = (struct room_taken){ low, high };
}

void room_free_around(struct room *room)
{
	room_free(room, (int64_t)room->low - (INT64_C(1) << 31), (int64_t)room->low - (1 << 20));
	room_free(room, (int64_t)room->high + (1 << 20), (int64_t)room->high + (INT64_C(1) << 31));
}

static void set_flag(struct room *room, uint64_t vaddr, size_t size, uint8_t flag)
{
	for (uint64_t at = vaddr; at < vaddr + size; at++) {
		if (at >= room->low && at < room->high)
			room->flags[at - room->low] |= flag;
	}
}

void room_lock(struct room *room, uint64_t vaddr, size_t size)
{
	set_flag(room, vaddr, size, LOCKED);
}

void room_want(struct room *room, uint64_t vaddr)
{
	set_flag(room, vaddr, 1, WANTED);
}

void room_unsettle(struct room *room, uint64_t vaddr, size_t size)
{
	set_flag(room, vaddr, size, UNSTEADY);
}

uint64_t room_plain_target(uint64_t vaddr)
{
	return vaddr + 0x1000000 + (vaddr * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

void room_put(struct room *room, const struct kymo_plan *plan)
{
	uint8_t plain[KYMO_JUMP_SIZE];
	const uint8_t *patch = plan->patch;

	assert_false(has_flag(room, plan->vaddr, plan->patch_size, LOCKED));
	assert_true(plan->patch_size <= plan->lock_size && plan->window <= plan->lock_size);
	if (!plan->trampoline) {
		assert_int_equal(kymo_encode_jump(plan->vaddr, room_plain_target(plan->vaddr), plain), 0);
		patch = plain;
	}
	memcpy(room->now + (plan->vaddr - room->low), patch, plan->patch_size);
	set_flag(room, plan->vaddr, plan->patch_size, CHANGED);
	room_lock(room, plan->vaddr, plan->lock_size);
}

void room_take_out(struct room *room, const struct kymo_plan *plan)
{
	memcpy(room->now + (plan->vaddr - room->low), plan->original, plan->patch_size);
}

uint64_t room_follow(const struct room *room, uint64_t vaddr)
{
	const uint8_t *bytes = room->now + (vaddr - room->low);
	size_t left = room->high - vaddr, at = 0;
	int32_t distance;

	if (left >= 2 && bytes[0] == 0xeb) {
		vaddr += 2 + (uint64_t)(int8_t)bytes[1];
		if (vaddr < room->low || vaddr >= room->high)
			return 0;
		bytes = room->now + (vaddr - room->low);
		left = room->high - vaddr;
	}
	while (at < left && bytes[at] != 0xe9 && at < 10) {
		if (!strchr("\x2e\x26\x36\x3e\x64\x65", bytes[at]) && (bytes[at] & 0xf0) != 0x40)
			return 0;
		at++;
	}
	if (left < at + KYMO_JUMP_SIZE || bytes[at] != 0xe9)
		return 0;
	memcpy(&distance, bytes + at + 1, sizeof(distance));
	return vaddr + at + KYMO_JUMP_SIZE + (uint64_t)(int64_t)distance;
}

bool room_has_taken(const struct room *room, uint64_t vaddr, size_t size)
{
	size_t i = taken_at(room, (int64_t)vaddr);

	return i < room->n_taken && room->taken[i].low <= (int64_t)vaddr &&
	       room->taken[i].high >= (int64_t)vaddr + (int64_t)size;
}
