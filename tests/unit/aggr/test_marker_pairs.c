/* What ends a marker's span is what the other way round begins it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggr/marker_pairs.h"

static bool has(char *(*list)(const char *name, size_t i), const char *name, const char *wanted)
{
	bool found = false;
	char *one;

	for (size_t i = 0; (one = list(name, i)); i++) {
		found |= !strcmp(one, wanted);
		free(one);
	}
	return found;
}

static void both_ways_are_one_table(void **state)
{
	static const char *const begins[] = { "app:x__start", "app:x__begin", "p:f-entry",
					      "p:f-enter",    "start",        "x:y_enter" };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		size_t n = 0;

		for (char *end; (end = kymo_marker_end(begins[i], n)); n++) {
			assert_true(has(kymo_marker_begin, end, begins[i]));
			free(end);
		}
		assert_true(n >= 2);
	}
	assert_true(has(kymo_marker_begin, "app:x__done", "app:x__start"));
	assert_true(has(kymo_marker_begin, "app:x__done", "app:x__begin"));
	assert_true(has(kymo_marker_begin, "app:x__exit", "app:x__enter"));
	assert_true(has(kymo_marker_end, "app:x__start", "app:x__finish"));
	assert_true(has(kymo_marker_begin, "app:*__end", "app:*__begin"));
}

static void other_names_have_none(void **state)
{
	assert_null(kymo_marker_end("app:restart", 0));
	assert_null(kymo_marker_begin("app:undone", 0));
	assert_null(kymo_marker_end("app:x__done", 0));
	assert_null(kymo_marker_begin("app:x__start", 0));
	assert_null(kymo_marker_begin("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_are_one_table),
		cmocka_unit_test(other_names_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
