/* Calls in pairs, of records that come out of order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggr/calls.h"

static char told[512];

static void tell(void *data, enum kymo_call_end end, const struct frame *entry, const struct kymo_call_hit *leave)
{
	const size_t used = strlen(told);

	if (end == KYMO_CALL_RETURNED)
		snprintf(told + used, sizeof(told) - used, "%d:%d=%d ", leave->tid, (int)entry->kept[0],
			 (int)(leave->tsc - entry->begin));
	else
		snprintf(told + used, sizeof(told) - used, end == KYMO_CALL_OVER_LOSS ? "%d:loss " : "%d:none ",
			 leave->tid);
}

static void add(struct kymo_open_calls *calls, uint64_t tsc, int32_t tid, char what, uint64_t stack_pointer)
{
	const struct kymo_call_hit hit = { .tsc = tsc,
					   .tid = tid,
					   .is_entry = what == '(',
					   .function = 1,
					   .stack_pointer = stack_pointer,
					   .values = { tsc } };

	assert_null(kymo_open_calls_add(calls, &hit));
}

static const char *settle(struct kymo_open_calls *calls, uint64_t tsc)
{
	*told = '\0';
	assert_null(kymo_open_calls_settle(calls, tsc, tell, NULL));
	return told;
}

static void test_order(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };

	add(&calls, 30, 1, ')', 0x7000); /* of one CPU, before what the other one has */
	add(&calls, 50, 1, ')', 0x7010);
	add(&calls, 10, 1, '(', 0x7010);
	add(&calls, 20, 1, '(', 0x7000);
	assert_string_equal(settle(&calls, 40), "1:20=10 ");
	assert_string_equal(settle(&calls, 51), "1:10=40 ");
	kymo_open_calls_deinit(&calls);
}

static void test_left_calls(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };

	add(&calls, 10, 1, '(', 0x7010);
	add(&calls, 20, 1, '(', 0x7000); /* is left by an exception */
	add(&calls, 30, 1, '(', 0x7000);
	add(&calls, 40, 1, ')', 0x7000);
	add(&calls, 50, 1, ')', 0x7010);
	add(&calls, 60, 2, ')', 0x7010); /* began before */
	assert_string_equal(settle(&calls, UINT64_MAX), "1:30=10 1:10=40 2:none ");
	kymo_open_calls_deinit(&calls);
}

static void test_losses(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };
	const struct kymo_call_hit loss = { .tsc = 25, .loss_end = 35 };

	add(&calls, 10, 1, '(', 0x7010);
	add(&calls, 20, 1, ')', 0x7010);
	add(&calls, 22, 1, '(', 0x7010);
	assert_null(kymo_open_calls_add(&calls, &loss));
	add(&calls, 30, 1, ')', 0x7010);
	add(&calls, 40, 1, '(', 0x7010);
	add(&calls, 41, 1, ')', 0x7010);
	assert_string_equal(settle(&calls, UINT64_MAX), "1:10=10 1:loss 1:40=1 ");
	kymo_open_calls_deinit(&calls);
}

/* "R(" "Q(" "R)" …: Q is begun within R, and an error leaves it open. */
static void test_spans_have_stacks_of_their_own(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };
	size_t n = 0;

	for (uint64_t i = 0; i < 6000; i++) {
		const struct kymo_call_hit hits[] = {
			{ .tsc = 100 * i, .tid = 1, .is_entry = true, .function = 1, .is_span = true },
			{ .tsc = 100 * i + 10, .tid = 1, .is_entry = true, .function = 2, .is_span = true },
			{ .tsc = 100 * i + 30, .tid = 1, .function = 1, .is_span = true },
		};

		for (size_t k = 0; k < sizeof(hits) / sizeof(hits[0]); k++)
			assert_null(kymo_open_calls_add(&calls, &hits[k]));
		n += !strcmp(settle(&calls, UINT64_MAX), "1:0=30 ");
	}
	assert_int_equal(n, 6000);
	/* Interleaved ones: the last beginning goes with the first end. */
	for (uint64_t i = 0; i < 4; i++) {
		const struct kymo_call_hit hit = {
			.tsc = 1000000 + 10 * i, .tid = 2, .is_entry = i < 2, .function = 3, .is_span = true
		};

		assert_null(kymo_open_calls_add(&calls, &hit));
	}
	assert_string_equal(settle(&calls, UINT64_MAX), "2:0=10 2:0=30 ");
	kymo_open_calls_deinit(&calls);
}

static void test_many_threads(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };

	for (int32_t tid = 1; tid <= 1000; tid++)
		add(&calls, 10, tid, '(', 0x7010);
	assert_string_equal(settle(&calls, 20), "");
	add(&calls, 30, 777, ')', 0x7010);
	assert_string_equal(settle(&calls, 40), "777:10=20 ");
	assert_int_equal(calls.waiting.n, 0);
	kymo_open_calls_deinit(&calls);
}

/* ---- records of entries ---------------------------------------------------------------------- */

#define RECORD_SIZE 1000u

/* What the record of the entry at `tsc` has. */
static void fill(uint8_t *bytes, uint64_t tsc)
{
	memset(bytes, (int)(tsc * 37 + 1), RECORD_SIZE);
	memcpy(bytes, &tsc, sizeof(tsc));
}

struct recorded {
	const struct kymo_open_calls *calls;
	uint64_t n_right, n_without;
};

static void compare(void *data, enum kymo_call_end end, const struct frame *entry, const struct kymo_call_hit *leave)
{
	struct recorded *recorded = data;
	uint8_t bytes[RECORD_SIZE];

	assert_int_equal(end, KYMO_CALL_RETURNED);
	if (!entry->record_size) {
		recorded->n_without++;
		return;
	}
	fill(bytes, entry->begin);
	assert_int_equal(entry->record_size, RECORD_SIZE);
	assert_memory_equal(kymo_entry_records_get(&recorded->calls->entries, entry->record_at), bytes, RECORD_SIZE);
	recorded->n_right++;
}

static void add_recorded(struct kymo_open_calls *calls, uint64_t tsc, int32_t tid, bool is_entry,
			 uint64_t stack_pointer)
{
	uint8_t bytes[RECORD_SIZE];
	struct kymo_call_hit hit = {
		.tsc = tsc, .tid = tid, .is_entry = is_entry, .function = 1, .stack_pointer = stack_pointer
	};

	fill(bytes, tsc);
	if (is_entry) {
		hit.record = bytes;
		hit.record_size = RECORD_SIZE;
	}
	assert_null(kymo_open_calls_add(calls, &hit));
}

/* However many others there are meanwhile, and wherever the calls are: in threads that wait, and around others. */
static void the_record_of_an_entry_stays_while_its_call_is_open(void **state)
{
	struct kymo_open_calls calls = { .size = 0 };
	struct recorded recorded = { .calls = &calls };
	uint64_t tsc = 1;

	for (int32_t tid = 1; tid <= 50; tid++)
		add_recorded(&calls, tsc++, tid, true, 0x7fff0000);
	for (int i = 0; i < 20000; i++) {
		add_recorded(&calls, tsc++, 1 + i % 3, true, 0x7ffe0000);
		add_recorded(&calls, tsc++, 1 + i % 3, false, 0x7ffe0000);
		if (i % 100 == 99)
			assert_null(kymo_open_calls_settle(&calls, tsc, compare, &recorded));
	}
	for (int32_t tid = 1; tid <= 50; tid++)
		add_recorded(&calls, tsc++, tid, false, 0x7fff0000);
	assert_null(kymo_open_calls_settle(&calls, tsc, compare, &recorded));
	assert_int_equal(recorded.n_right, 20050);
	assert_int_equal(recorded.n_without + calls.n_forgotten, 0);
	assert_true(calls.entries.size < 1u << 20);
	kymo_open_calls_deinit(&calls);
}

static void more_open_calls_than_there_is_room_for_are_counted(void **state)
{
	const uint64_t n = KYMO_ENTRY_RECORDS_MAX / RECORD_SIZE + 5000;
	struct kymo_open_calls calls = { .size = 0 };
	struct recorded recorded = { .calls = &calls };

	for (uint64_t i = 0; i < n; i++) {
		add_recorded(&calls, i + 1, (int32_t)(i / 100), true, 0x7fff0000 - i % 100 * 64);
		if (i % 10000 == 0)
			assert_null(kymo_open_calls_settle(&calls, i + 1, compare, &recorded));
	}
	for (uint64_t i = n; i-- > 0;)
		add_recorded(&calls, 2 * n - i, (int32_t)(i / 100), false, 0x7fff0000 - i % 100 * 64);
	assert_null(kymo_open_calls_settle(&calls, UINT64_MAX, compare, &recorded));
	assert_int_equal(recorded.n_right + recorded.n_without, n);
	assert_true(recorded.n_without > 0);
	assert_int_equal(recorded.n_without, calls.n_forgotten);
	kymo_open_calls_deinit(&calls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_left_calls),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_spans_have_stacks_of_their_own),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(the_record_of_an_entry_stays_while_its_call_is_open),
		cmocka_unit_test(more_open_calls_than_there_is_room_for_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
