/* Addresses for trampolines, and what is known of the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/coexist/text.h"
#include "probe/plan/pool.h"

#define JUMP 5

static struct probe_pool room;

static int begin(void **state)
{
	memset(&room, 0, sizeof(room));
	assert_true(probe_pool_add_hole(&room, 0x10000, 0x20000));
	assert_true(probe_pool_add_hole(&room, 0x40000, 0x80000));
	return 0;
}

static int end(void **state)
{
	probe_pool_deinit(&room);
	return 0;
}

static void a_place_lies_in_the_range_and_in_a_hole(void **state)
{
	assert_int_equal(probe_pool_reserve(&room, 0x12345, 0x12345, JUMP), 0x12345);
	assert_int_equal(probe_pool_reserve(&room, 0x30000, 0x3ffff, JUMP), 0);
	assert_int_equal(probe_pool_reserve(&room, 0, 0xffff, JUMP), 0);
	assert_int_equal(probe_pool_reserve(&room, 0x1fffb, 0x1fffb, JUMP), 0x1fffb);
	assert_int_equal(probe_pool_reserve(&room, 0x1fffc, 0x30000, JUMP), 0);
}

static void what_is_taken_is_not_given_twice_and_can_be_given_back(void **state)
{
	assert_int_equal(probe_pool_reserve(&room, 0x11000, 0x11000, JUMP), 0x11000);
	for (uint64_t at = 0x10ffc; at < 0x11005; at++)
		assert_int_equal(probe_pool_reserve(&room, at, at, JUMP), 0);
	assert_int_equal(probe_pool_reserve(&room, 0x10ffb, 0x10ffb, JUMP), 0x10ffb);
	probe_pool_release(&room, 0x11000, JUMP);
	assert_int_equal(probe_pool_reserve(&room, 0x10ffc, 0x11004, JUMP), 0x11000);
}

static void a_range_may_wrap_around_zero(void **state)
{
	uint64_t found = probe_pool_reserve(&room, UINT64_MAX - 100, 0x10010, JUMP);

	assert_in_range(found, 0x10000, 0x10010);
}

static void wide_ranges_share_pages(void **state)
{
	struct pool_hole runs[4];

	for (int i = 0; i < 800; i++)
		assert_int_not_equal(probe_pool_reserve(&room, 0x11000, 0x7f000, JUMP), 0);
	assert_int_equal(probe_pool_stretches(&room, 0, NULL), 1);
	probe_pool_stretches(&room, 0, runs);
	assert_in_range(runs[0].high - runs[0].low, 0x1000, 0x2000);
}

static void full_pages_do_not_hide_the_free_ones_behind(void **state)
{
	for (int i = 0; i < 40000; i++)
		assert_int_not_equal(probe_pool_reserve(&room, 0x40000, 0x7f000, JUMP), 0);
}

static void runs_join_over_small_gaps_within_a_hole(void **state)
{
	struct pool_hole runs[4];

	assert_int_not_equal(probe_pool_reserve(&room, 0x1f000, 0x1f000, JUMP), 0);
	assert_int_not_equal(probe_pool_reserve(&room, 0x41000, 0x41000, JUMP), 0);
	assert_int_not_equal(probe_pool_reserve(&room, 0x44000, 0x44000, JUMP), 0);
	assert_int_equal(probe_pool_stretches(&room, 1, NULL), 3);
	assert_int_equal(probe_pool_stretches(&room, 1000, runs), 2);
	assert_int_equal(runs[0].low, 0x1f000);
	assert_int_equal(runs[1].low, 0x41000);
	assert_int_equal(runs[1].high, 0x45000);
}

static void a_page_that_was_given_back_is_no_run(void **state)
{
	assert_int_equal(probe_pool_reserve(&room, 0x50000, 0x50000, JUMP), 0x50000);
	probe_pool_release(&room, 0x50000, JUMP);
	assert_int_equal(probe_pool_stretches(&room, 0, NULL), 0);
}

/* Against a map of single bytes. */
static void random_reservations_never_overlap(void **state)
{
	static uint8_t taken[0x80000];
	uint64_t given[2000];
	size_t n = 0;

	memset(taken, 0, sizeof(taken));
	srandom(7);
	for (int i = 0; i < 6000; i++) {
		uint64_t low = (uint64_t)random() % 0x80000, width = (uint64_t)1 << random() % 18;
		uint64_t found = probe_pool_reserve(&room, low, low + width - 1, JUMP);

		if (!found)
			continue;
		assert_in_range(found, low, low + width - 1);
		assert_true((found >= 0x10000 && found + JUMP <= 0x20000) ||
			    (found >= 0x40000 && found + JUMP <= 0x80000));
		for (int k = 0; k < JUMP; k++)
			assert_int_equal(taken[found + (uint64_t)k]++, 0);
		if (n < 2000)
			given[n++] = found;
		if (random() % 3 == 0) {
			uint64_t back = given[--n];

			probe_pool_release(&room, back, JUMP);
			memset(taken + back, 0, JUMP);
		}
	}
}

static void text_shows_what_is_written_and_keeps_marks_apart(void **state)
{
	struct probe_text text = { .pages = { 0 } };
	uint8_t bytes[8] = "abcdefg";

	assert_true(probe_text_write(&text, 0x1ffe, (const uint8_t *)"XYZ", 3));
	probe_text_look(&text, 0x1ffc, bytes, 7);
	assert_memory_equal(bytes, "abXYZfg", 7);
	assert_true(probe_text_is(&text, TEXT_CHANGED, 0x2000, 1));
	assert_false(probe_text_is(&text, TEXT_CHANGED, 0x2001, 100));
	assert_false(probe_text_is(&text, TEXT_LOCKED, 0x1ffe, 3));
	assert_true(probe_text_mark(&text, TEXT_WANTED, 0x1fff, 2, true));
	assert_true(probe_text_mark(&text, TEXT_WANTED, 0x1fff, 1, false));
	assert_false(probe_text_is(&text, TEXT_WANTED, 0x1000, 0x1000));
	assert_true(probe_text_is(&text, TEXT_WANTED, 0x1000, 0x1001));
	probe_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_place_lies_in_the_range_and_in_a_hole, begin, end),
		cmocka_unit_test_setup_teardown(what_is_taken_is_not_given_twice_and_can_be_given_back, begin, end),
		cmocka_unit_test_setup_teardown(a_range_may_wrap_around_zero, begin, end),
		cmocka_unit_test_setup_teardown(wide_ranges_share_pages, begin, end),
		cmocka_unit_test_setup_teardown(full_pages_do_not_hide_the_free_ones_behind, begin, end),
		cmocka_unit_test_setup_teardown(runs_join_over_small_gaps_within_a_hole, begin, end),
		cmocka_unit_test_setup_teardown(a_page_that_was_given_back_is_no_run, begin, end),
		cmocka_unit_test_setup_teardown(random_reservations_never_overlap, begin, end),
		cmocka_unit_test(text_shows_what_is_written_and_keeps_marks_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
