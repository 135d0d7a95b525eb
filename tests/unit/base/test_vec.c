#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

static void what_is_pushed_stays_in_order(void **state)
{
	KYMO_VEC(struct {
		int key;
		long value;
	})
	v = { 0 };

	for (int i = 0; i < 1000; i++)
		assert_true(kymo_vec_push(&v, (__typeof__(*v.items)){ i, -i }));
	assert_int_equal(v.n, 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(v.items[i].key, i);
		assert_int_equal(v.items[i].value, -i);
	}
	kymo_vec_deinit(&v);
	assert_null(v.items);
	assert_int_equal(v.n + v.cap, 0);
}

static void room_that_can_not_be_is_refused_and_nothing_changes(void **state)
{
	KYMO_VEC(uint64_t) v = { 0 };

	assert_true(kymo_vec_push(&v, 7));
	assert_false(kymo_vec_reserve(&v, SIZE_MAX / 4));
	assert_false(kymo_vec_reserve(&v, SIZE_MAX));
	assert_int_equal(v.n, 1);
	assert_int_equal(v.items[0], 7);
	kymo_vec_deinit(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_pushed_stays_in_order),
		cmocka_unit_test(room_that_can_not_be_is_refused_and_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
