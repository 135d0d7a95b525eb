/* Tables: rows by keys, buckets, order, and what finds no room. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "aggr/table.h"
#include "base/cleanup.h"

static const struct kymo_aggr by_two = { .kind = KYMO_AGGR_COUNT,
					 .n_keys = 2,
					 .keys = { { .type = KYMO_TYPE_S64 }, { .type = KYMO_TYPE_STRING } } };

static void test_rows(void **state)
{
	struct kymo_aggr_table table;
	const struct kymo_aggr_row **rows;

	kymo_aggr_table_init(&table, &by_two, 1000);
	for (uint64_t i = 0; i < 300; i++) {
		struct kymo_aggr_keys keys = { .values = { i % 100 } };

		kymo_aggr_set_text(&table, &keys, 1, i % 100 < 50 ? "low" : "high");
		kymo_aggr_add(&table, &keys, 0);
		if (i % 100 == 7)
			kymo_aggr_add(&table, &keys, 0);
	}
	assert_int_equal(table.rows.n, 100);
	assert_int_equal(table.hits, 303);
	assert_int_equal(table.lost, 0);
	rows = kymo_aggr_sorted(&table);
	assert_non_null(rows);
	assert_int_equal(rows[0]->keys.values[0], 7);
	assert_int_equal(rows[0]->count, 6);
	assert_int_equal(rows[1]->keys.values[0], 0); /* equal ones by their keys */
	assert_string_equal(kymo_strings_text(&table.strings, rows[0]->keys.values[1]), "low");
	free(rows);
	kymo_aggr_table_deinit(&table);
}

static void test_full(void **state)
{
	struct kymo_aggr_table table;

	kymo_aggr_table_init(&table, &by_two, 3);
	for (uint64_t i = 0; i < 10; i++)
		kymo_aggr_add(&table, &(struct kymo_aggr_keys){ .values = { i % 5 } }, 0);
	assert_int_equal(table.rows.n, 3);
	assert_int_equal(table.hits, 6);
	assert_int_equal(table.lost, 4);
	kymo_aggr_table_clear(&table);
	assert_int_equal(table.lost, 0);
	kymo_aggr_add(&table, &(struct kymo_aggr_keys){ .values = { 9 } }, 0);
	assert_int_equal(table.rows.n, 1);
	kymo_aggr_table_deinit(&table);
}

/* A new text without room is no fault, and no row that is there gets its hit. */
static void test_texts_without_room(void **state)
{
	struct kymo_aggr_table table;
	struct kymo_aggr_keys fault = { .faults = 2 };
	char text[16];

	kymo_aggr_table_init(&table, &by_two, SIZE_MAX);
	kymo_aggr_add(&table, &fault, 0);
	for (unsigned int i = 0; i < KYMO_STRINGS_MAX + 3; i++) {
		struct kymo_aggr_keys keys = { .faults = 0 };

		snprintf(text, sizeof(text), "%u", i);
		kymo_aggr_set_text(&table, &keys, 1, text);
		kymo_aggr_add(&table, &keys, 0);
	}
	assert_int_equal(table.rows.n, KYMO_STRINGS_MAX + 1);
	assert_int_equal(table.lost, 3);
	assert_int_equal(kymo_aggr_row(&table, &fault)->count, 1);
	kymo_aggr_table_deinit(&table);
}

static void test_faults_are_keys_of_their_own(void **state)
{
	struct kymo_aggr_table table;

	kymo_aggr_table_init(&table, &by_two, 3);
	kymo_aggr_add(&table, &(struct kymo_aggr_keys){ .faults = 1 }, 0);
	kymo_aggr_add(&table, &(struct kymo_aggr_keys){ .faults = 0 }, 0);
	assert_int_equal(table.rows.n, 2);
	kymo_aggr_table_deinit(&table);
}

static void test_values(void **state)
{
	static const int64_t values[] = { -5, 0, 1, 7, INT64_MIN, INT64_MAX };
	const struct kymo_aggr hist = { .kind = KYMO_AGGR_HIST, .has_value = true, .value = { .type = KYMO_TYPE_S64 } };
	struct kymo_aggr_table table;
	const struct kymo_aggr_row *row;

	kymo_aggr_table_init(&table, &hist, 3);
	for (size_t i = 0; i < kymo_countof(values); i++)
		kymo_aggr_add(&table, &(struct kymo_aggr_keys){ .faults = 0 }, (uint64_t)values[i]);
	row = &table.rows.items[0];
	assert_true((int64_t)row->min == INT64_MIN && (int64_t)row->max == INT64_MAX);
	assert_true(row->sum == 2);
	assert_int_equal(row->buckets[KYMO_AGGR_ZERO], 1);
	assert_int_equal(row->buckets[KYMO_AGGR_ZERO + 1], 1);
	assert_int_equal(row->buckets[KYMO_AGGR_ZERO + 3], 1);
	assert_int_equal(row->buckets[KYMO_AGGR_ZERO - 3], 1);
	assert_int_equal(row->buckets[0], 1);
	assert_int_equal(row->buckets[KYMO_AGGR_ZERO + 63], 1);
	kymo_aggr_table_deinit(&table);
}

static void test_steps(void **state)
{
	const struct kymo_aggr steps = { .kind = KYMO_AGGR_LHIST,
					 .has_value = true,
					 .value = { .type = KYMO_TYPE_S64 },
					 .low = -10,
					 .high = 10,
					 .step = 5 };
	const struct kymo_aggr unsigned_steps = { .kind = KYMO_AGGR_LHIST,
						  .has_value = true,
						  .value = { .type = KYMO_TYPE_U64 },
						  .low = 0,
						  .high = 10,
						  .step = 5 };
	int64_t low, high;

	assert_int_equal(kymo_aggr_n_buckets(&steps), 6);
	assert_int_equal(kymo_aggr_bucket(&steps, (uint64_t)-11), 0);
	assert_int_equal(kymo_aggr_bucket(&steps, (uint64_t)-10), 1);
	assert_int_equal(kymo_aggr_bucket(&steps, 9), 4);
	assert_int_equal(kymo_aggr_bucket(&steps, 10), 5);
	assert_int_equal(kymo_aggr_bucket(&unsigned_steps, UINT64_MAX), 3);
	kymo_aggr_step(&steps, 1, &low, &high);
	assert_true(low == -10 && high == -6);
	kymo_aggr_step(&steps, 0, &low, &high);
	assert_true(low == INT64_MIN && high == -11);
	kymo_aggr_step(&steps, 5, &low, &high);
	assert_true(low == 10 && high == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_texts_without_room),
		cmocka_unit_test(test_faults_are_keys_of_their_own),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
