/* Records of entries in a circle: each is what was put there, or is known to be overwritten. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggr/entry_records.h"

#define RECORD_MAX 4000u
#define N 40000u

static void fill(uint8_t *bytes, uint32_t number, uint32_t n)
{
	memset(bytes, (int)(number * 37 + 1), n);
	memcpy(bytes, &number, n < sizeof(number) ? n : sizeof(number));
}

static uint32_t size_of(uint32_t number)
{
	return number * 2654435761u % RECORD_MAX + 4;
}

static void each_is_as_it_was_put_or_is_overwritten(void **state)
{
	struct kymo_entry_records records = { .items = NULL };
	static uint64_t at[N];
	uint8_t bytes[RECORD_MAX + 4];
	uint32_t oldest = 0;

	assert_null(kymo_entry_records_get(&records, 0, 4));
	for (uint32_t i = 0; i < N; i++) {
		fill(bytes, i, size_of(i));
		assert_true(kymo_entry_records_put(&records, bytes, size_of(i), &at[i]));
		assert_true(records.size <= KYMO_ENTRY_RECORDS_MAX);
		while (!kymo_entry_records_get(&records, at[oldest], size_of(oldest)))
			oldest++;
		assert_true(oldest <= i);
	}
	/* No more is overwritten than has to be: but for one record that had no room before the end. */
	assert_true(records.head - at[oldest] >= KYMO_ENTRY_RECORDS_MAX - 2 * (RECORD_MAX + 4));
	for (uint32_t i = 0; i < N; i++) {
		const uint8_t *found = kymo_entry_records_get(&records, at[i], size_of(i));

		assert_true(!found == (i < oldest));
		fill(bytes, i, size_of(i));
		if (found)
			assert_memory_equal(found, bytes, size_of(i));
	}
	kymo_entry_records_deinit(&records);
	assert_null(kymo_entry_records_get(&records, at[N - 1], 4));
}

static void while_it_grows_none_is_lost(void **state)
{
	struct kymo_entry_records records = { .items = NULL };
	uint64_t at[1000];
	uint8_t bytes[1000];

	for (uint32_t i = 0; i < 1000; i++) {
		fill(bytes, i, sizeof(bytes));
		assert_true(kymo_entry_records_put(&records, bytes, sizeof(bytes), &at[i]));
	}
	assert_true(records.size < KYMO_ENTRY_RECORDS_MAX);
	for (uint32_t i = 0; i < 1000; i++) {
		fill(bytes, i, sizeof(bytes));
		assert_memory_equal(kymo_entry_records_get(&records, at[i], sizeof(bytes)), bytes, sizeof(bytes));
	}
	kymo_entry_records_deinit(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_as_it_was_put_or_is_overwritten),
		cmocka_unit_test(while_it_grows_none_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
