#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/quantiles.h"

static void quantiles_are_near(void **state)
{
	struct quantiles q = { 0 };

	assert_int_equal(kymo_quantiles_get(&q, 50), 0);
	for (uint64_t i = 1; i <= 60; i++)
		assert_true(kymo_quantiles_add(&q, i));
	/* Small values are exact. */
	assert_int_equal(kymo_quantiles_get(&q, 1), 1);
	assert_int_equal(kymo_quantiles_get(&q, 50), 30);
	assert_int_equal(kymo_quantiles_get(&q, 90), 54);
	assert_int_equal(kymo_quantiles_get(&q, 100), 60);
	kymo_quantiles_deinit(&q);
	for (uint64_t i = 1; i <= 100000; i++)
		assert_true(kymo_quantiles_add(&q, i * 1000003));
	for (unsigned int percent = 1; percent <= 100; percent++) {
		double truth = percent * 1000.0 * 1000003, got = (double)kymo_quantiles_get(&q, percent);

		assert_true(got > truth * 0.984 && got < truth * 1.016);
	}
	kymo_quantiles_deinit(&q);
	assert_true(kymo_quantiles_add(&q, UINT64_MAX));
	assert_true(kymo_quantiles_get(&q, 50) > UINT64_MAX / 64 * 63);
	kymo_quantiles_deinit(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
