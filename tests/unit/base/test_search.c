#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/search.h"

static void the_first_that_is_not_in_front_is_found_for_every_size_and_place(void **state)
{
	for (size_t n = 0; n < 70; n++)
		for (size_t front = 0; front <= n; front++)
			assert_int_equal(kymo_partition_point(i, n, i < front), front);
}

static void of_equal_ones_the_first_or_the_one_behind_them_is_found(void **state)
{
	const int sorted[] = { 1, 3, 3, 3, 7 };

	assert_int_equal(kymo_partition_point(i, kymo_countof(sorted), sorted[i] < 3), 1);
	assert_int_equal(kymo_partition_point(i, kymo_countof(sorted), sorted[i] <= 3), 4);
	assert_int_equal(kymo_partition_point(i, kymo_countof(sorted), sorted[i] < 8), 5);
}

static void nothing_beyond_the_end_is_looked_at(void **state)
{
	size_t highest = 0;

	assert_int_equal(kymo_partition_point(i, 1000, (highest = i > highest ? i : highest) < 1000), 1000);
	assert_int_equal(highest, 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_not_in_front_is_found_for_every_size_and_place),
		cmocka_unit_test(of_equal_ones_the_first_or_the_one_behind_them_is_found),
		cmocka_unit_test(nothing_beyond_the_end_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
