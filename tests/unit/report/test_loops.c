/* Loops of a history, and where two histories part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "report/loops.h"
#include "report/parting.h"

static void check_loops(const uint64_t *branches, size_t n, const struct loop *expected, size_t n_expected)
{
	struct loops loops = { 0 };

	assert_true(kymo_loops_find(branches, n, &loops));
	assert_int_equal(loops.items.n, n_expected);
	for (size_t i = 0; i < n_expected; i++) {
		assert_int_equal(loops.items.items[i].start, expected[i].start);
		assert_int_equal(loops.items.items[i].length, expected[i].length);
		assert_int_equal(loops.items.items[i].count, expected[i].count);
	}
	kymo_vec_deinit(&loops.items);
}

static void test_nothing_repeats(void **state)
{
	static const uint64_t branches[] = { 1, 2, 3, 1 };
	static const struct loop loops[] = { { 0, 1, 1 }, { 1, 1, 1 }, { 2, 1, 1 }, { 3, 1, 1 } };

	check_loops(branches, kymo_countof(branches), loops, kymo_countof(loops));
	check_loops(branches, 0, NULL, 0);
}

static void test_one_branch_repeats(void **state)
{
	static const uint64_t branches[] = { 9, 5, 5, 5, 5, 7 };
	static const struct loop loops[] = { { 0, 1, 1 }, { 1, 1, 4 }, { 5, 1, 1 } };

	check_loops(branches, kymo_countof(branches), loops, kymo_countof(loops));
}

static void test_several_repeat_with_a_rest(void **state)
{
	static const uint64_t branches[] = { 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 4 };
	static const struct loop loops[] = { { 0, 3, 3 }, { 9, 1, 1 }, { 10, 1, 1 } };

	check_loops(branches, kymo_countof(branches), loops, kymo_countof(loops));
}

static void test_the_longest_loop_that_is_folded(void **state)
{
	uint64_t branches[4 * LOOP_MAX + 2];
	static const struct loop at_most[] = { { 0, LOOP_MAX, 2 } };
	struct loops loops = { 0 };

	for (size_t i = 0; i < kymo_countof(branches); i++)
		branches[i] = i % LOOP_MAX;
	check_loops(branches, 2 * LOOP_MAX, at_most, 1);
	for (size_t i = 0; i < kymo_countof(branches); i++)
		branches[i] = i % (LOOP_MAX + 1);
	assert_true(kymo_loops_find(branches, 2 * (LOOP_MAX + 1), &loops));
	assert_int_equal(loops.items.n, 2 * (LOOP_MAX + 1));
	kymo_vec_deinit(&loops.items);
}

static void test_whole_histories_part(void **state)
{
	static const uint64_t a[] = { 1, 2, 3, 4, 5 }, b[] = { 1, 2, 3, 9 };
	struct parting parting;

	assert_true(kymo_part(a, 5, b, 4, true, &parting));
	assert_int_equal(parting.a, 0);
	assert_int_equal(parting.b, 0);
	assert_int_equal(parting.n, 3);
	assert_true(kymo_part(a, 5, a, 5, true, &parting));
	assert_int_equal(parting.n, 5);
	assert_true(kymo_part(a, 5, a, 0, true, &parting));
	assert_int_equal(parting.n, 0);
}

static void test_tails_are_laid_beside_each_other(void **state)
{
	uint64_t a[200], b[150];
	struct parting parting;

	for (size_t i = 0; i < kymo_countof(a); i++)
		a[i] = 1000 + i;
	for (size_t i = 0; i < kymo_countof(b); i++)
		b[i] = 1000 + 30 + i;
	b[120] = 7;
	assert_true(kymo_part(a, kymo_countof(a), b, kymo_countof(b), false, &parting));
	assert_int_equal(parting.a, 30);
	assert_int_equal(parting.b, 0);
	assert_int_equal(parting.n, 120);
}

static void test_tails_that_have_little_or_nothing_in_common(void **state)
{
	static const uint64_t a[] = { 1, 2, 3, 4, 5 }, b[] = { 8, 3, 4, 9 }, c[] = { 6, 7 };
	struct parting parting = { 11, 12, 13 };

	assert_true(kymo_part(a, 5, b, 4, false, &parting));
	assert_int_equal(parting.a, 2);
	assert_int_equal(parting.b, 1);
	assert_int_equal(parting.n, 2);
	parting = (struct parting){ 11, 12, 13 };
	assert_false(kymo_part(a, 5, c, 2, false, &parting));
	assert_int_equal(parting.a, 11);
	assert_false(kymo_part(a, 0, c, 2, false, &parting));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_repeats),
		cmocka_unit_test(test_one_branch_repeats),
		cmocka_unit_test(test_several_repeat_with_a_rest),
		cmocka_unit_test(test_the_longest_loop_that_is_folded),
		cmocka_unit_test(test_whole_histories_part),
		cmocka_unit_test(test_tails_are_laid_beside_each_other),
		cmocka_unit_test(test_tails_that_have_little_or_nothing_in_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
