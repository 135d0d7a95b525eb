/* From CLOCK_MONOTONIC to the TSC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/ktime.h"

static void add(struct kymo_ktime *ktime, uint64_t ns, uint64_t tsc)
{
	const struct kymo_clock_sample sample = { .tsc = tsc, .monotonic_ns = ns };

	kymo_ktime_add(ktime, &sample);
}

static void a_stamp_lies_between_the_samples_around_it(void **state)
{
	struct kymo_ktime ktime = { .n = 0 };

	add(&ktime, 1000, 5000);
	add(&ktime, 2000, 8000);
	add(&ktime, 4000, 16000);
	assert_int_equal(kymo_ktime_tsc(&ktime, 1000), 5000);
	assert_int_equal(kymo_ktime_tsc(&ktime, 1500), 6500);
	assert_int_equal(kymo_ktime_tsc(&ktime, 2000), 8000);
	assert_int_equal(kymo_ktime_tsc(&ktime, 3000), 12000);
	assert_int_equal(kymo_ktime_tsc(&ktime, 4000), 16000);
}

static void stamps_never_fall_though_the_rate_changes(void **state)
{
	struct kymo_ktime ktime = { .n = 0 };
	uint64_t last = 0;

	for (uint64_t i = 0, tsc = 1 << 20; i < KYMO_KTIME_SAMPLES; i++, tsc += 2000 + i % 3 * 700)
		add(&ktime, 1000000 + i * 1000, tsc);
	for (uint64_t ns = 990000; ns <= 1000000 + (KYMO_KTIME_SAMPLES - 1) * 1000; ns += 7) {
		uint64_t tsc = kymo_ktime_tsc(&ktime, ns);

		assert_true(tsc >= last);
		last = tsc;
	}
}

static void what_is_older_than_all_samples_is_placed_before_them(void **state)
{
	struct kymo_ktime ktime = { .n = 0 };

	for (uint64_t i = 0; i < 3 * KYMO_KTIME_SAMPLES; i++)
		add(&ktime, 1000 * i, 100000 + 3000 * i);
	assert_int_equal(ktime.n, KYMO_KTIME_SAMPLES);
	assert_int_equal(kymo_ktime_tsc(&ktime, 500), 100000 + 1500);
}

static void before_the_beginning_of_the_counter_is_its_beginning(void **state)
{
	struct kymo_ktime ktime = { .n = 0 };

	add(&ktime, 1000000, 10);
	add(&ktime, 1001000, 3010);
	assert_int_equal(kymo_ktime_tsc(&ktime, 0), 0);
}

static void samples_that_do_not_advance_are_left_out(void **state)
{
	struct kymo_ktime ktime = { .n = 0 };

	add(&ktime, 1000, 5000);
	add(&ktime, 1000, 5100);
	add(&ktime, 1100, 5000);
	assert_int_equal(ktime.n, 1);
	assert_true(kymo_ktime_reaches(&ktime, 1000));
	assert_false(kymo_ktime_reaches(&ktime, 1001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_lies_between_the_samples_around_it),
		cmocka_unit_test(stamps_never_fall_though_the_rate_changes),
		cmocka_unit_test(what_is_older_than_all_samples_is_placed_before_them),
		cmocka_unit_test(before_the_beginning_of_the_counter_is_its_beginning),
		cmocka_unit_test(samples_that_do_not_advance_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
