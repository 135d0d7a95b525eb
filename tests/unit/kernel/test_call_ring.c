/*
 * What the reader takes out of the ring of samples, with producers that are played step by step. That BPF programs do
 * these steps is seen by tests/e2e/syscalls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/call_ring.h"

enum { SIZE = 4096, LINES = 2 };

static struct call_ring_line *line(const struct call_ring *ring, size_t i)
{
	return (struct call_ring_line *)((uint8_t *)ring->memory + CALL_RING_LINES) + i;
}

static struct call_ring make(void)
{
	struct call_ring ring = { .shape = { .fd = -1,
					     .n_lines = LINES,
					     .size = SIZE,
					     .capacity = SIZE / 2,
					     .record_max = CALL_RING_RECORD_MAX } };

	ring.memory = calloc(1, CALL_RING_BYTES(LINES) + SIZE + CALL_RING_RECORD_MAX);
	assert_non_null(ring.memory);
	for (size_t i = 0; i < LINES; i++)
		line(&ring, i)->begun = CALL_RING_IDLE;
	return ring;
}

/* Steps 2 and 3: where the record is. */
static uint64_t *take(struct call_ring *ring, size_t cpu, uint32_t stride)
{
	struct call_ring_head *head = call_ring_head(ring);
	uint64_t at = head->head;

	line(ring, cpu)->begun = at;
	head->head += stride;
	return (uint64_t *)((uint8_t *)ring->memory + CALL_RING_BYTES(LINES) + at % SIZE);
}

static void publish(struct call_ring *ring, size_t cpu)
{
	line(ring, cpu)->begun = CALL_RING_IDLE;
}

static void what_a_cpu_writes_holds_back_what_is_behind_it(void **state)
{
	struct call_ring ring = make();
	uint64_t *first, *second;
	bool is_head;

	first = take(&ring, 0, 64);
	second = take(&ring, 1, 64);
	*second = 2;
	publish(&ring, 1);
	assert_null(call_ring_peek(&ring, call_ring_limit(&ring, &is_head)));
	assert_false(is_head);
	*first = 1;
	publish(&ring, 0);
	for (uint64_t i = 1; i <= 2; i++) {
		const uint64_t *record = call_ring_peek(&ring, call_ring_limit(&ring, &is_head));

		assert_true(is_head);
		assert_non_null(record);
		assert_int_equal(*record, i);
		call_ring_next(&ring, 64);
	}
	assert_null(call_ring_peek(&ring, call_ring_limit(&ring, &is_head)));
	free(ring.memory);
}

/* It has looked at the head, and others have gone on, before it says that it has begun. */
static void a_cpu_that_is_late_to_say_that_it_begins_takes_nothing_back(void **state)
{
	struct call_ring ring = make();
	bool is_head;

	for (int i = 0; i < 3; i++) {
		take(&ring, 1, 64);
		publish(&ring, 1);
		assert_non_null(call_ring_peek(&ring, call_ring_limit(&ring, &is_head)));
		call_ring_next(&ring, 64);
	}
	line(&ring, 0)->begun = 64;
	assert_null(call_ring_peek(&ring, call_ring_limit(&ring, &is_head)));
	assert_false(is_head);
	free(ring.memory);
}

static void records_are_in_one_piece_and_in_order_round_after_round(void **state)
{
	struct call_ring ring = make();
	bool is_head;

	for (uint64_t i = 0; i < 10000; i++) {
		const uint32_t stride = 64 + 8 * (uint32_t)(i % 50);
		const uint64_t *record;

		memset(take(&ring, i % LINES, stride), (int)(i & 0xff), stride);
		publish(&ring, i % LINES);
		record = call_ring_peek(&ring, call_ring_limit(&ring, &is_head));
		assert_non_null(record);
		for (uint32_t j = 0; j < stride / 8; j++)
			assert_int_equal(record[j], (i & 0xff) * UINT64_C(0x0101010101010101));
		call_ring_next(&ring, stride);
	}
	call_ring_tell(&ring);
	assert_int_equal(call_ring_head(&ring)->tail, call_ring_head(&ring)->head);
	free(ring.memory);
}

/* The oldest go, as they do where a producer finds no room. */
static void drop(struct call_ring *ring, uint64_t to)
{
	call_ring_head(ring)->tail = to;
}

static uint64_t value_of(struct call_ring *ring, bool *has_gap_ret)
{
	uint64_t room[CALL_RING_RECORD_MAX / 8];
	bool is_head;
	const uint64_t *record = call_ring_copy(ring, call_ring_limit(ring, &is_head), room, has_gap_ret);

	assert_true(!record || record == room);
	return record ? record[1] : 0;
}

static void what_is_overwritten_is_a_gap_and_the_newest_follow_it(void **state)
{
	struct call_ring ring = make();
	bool has_gap = false;

	ring.shape.overwrite = true;
	for (uint64_t i = 1; i <= SIZE / 64; i++) {
		uint64_t *record = take(&ring, 0, 64);

		*(uint32_t *)record = 64;
		record[1] = i;
		publish(&ring, 0);
	}
	assert_int_equal(value_of(&ring, &has_gap), 1);
	assert_false(has_gap);
	call_ring_next(&ring, 64);
	drop(&ring, 20 * 64);
	assert_int_equal(value_of(&ring, &has_gap), 21);
	assert_true(has_gap);
	call_ring_next(&ring, 64);
	call_ring_tell(&ring);
	assert_int_equal(call_ring_head(&ring)->tail, 21 * 64);
	drop(&ring, 30 * 64);
	call_ring_tell(&ring);
	assert_int_equal(call_ring_head(&ring)->tail, 30 * 64);
	drop(&ring, SIZE);
	assert_int_equal(value_of(&ring, &has_gap), 0);
	free(ring.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_cpu_writes_holds_back_what_is_behind_it),
		cmocka_unit_test(a_cpu_that_is_late_to_say_that_it_begins_takes_nothing_back),
		cmocka_unit_test(records_are_in_one_piece_and_in_order_round_after_round),
		cmocka_unit_test(what_is_overwritten_is_a_gap_and_the_newest_follow_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
