/* The rate of the TSC, also where a clock was set back or stood still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/clock.h"

static void a_rate_is_measured(void **state)
{
	const struct kymo_clock_sample begin = kymo_clock_sample();
	const uint64_t frequency = kymo_clock_frequency(&begin);

	assert_true(frequency > 100000000 && frequency < 20000000000);
}

static void clocks_that_were_set_back_give_no_wild_rate(void **state)
{
	struct kymo_clock_sample begin = kymo_clock_sample();

	begin.tsc += (uint64_t)1 << 50;
	assert_int_equal(kymo_clock_frequency(&begin), 1000000000);
	begin = kymo_clock_sample();
	begin.monotonic_ns += 3600000000000;
	assert_int_equal(kymo_clock_frequency(&begin), 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_measured),
		cmocka_unit_test(clocks_that_were_set_back_give_no_wild_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
