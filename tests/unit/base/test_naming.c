#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/naming.h"

static struct kymo_naming *naming_of(const struct kymo_naming_name *names, size_t n)
{
	struct kymo_naming *naming = kymo_naming_create();

	assert_non_null(naming);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(kymo_naming_add(naming, names[i].name, strlen(names[i].name), names[i].value), 0);
	return naming;
}

#define NAME(text, value) \
	{ \
		(char *)(text), value \
	}
#define NAMING(...) \
	naming_of((const struct kymo_naming_name[]){ __VA_ARGS__ }, \
		  sizeof((const struct kymo_naming_name[]){ __VA_ARGS__ }) / sizeof(struct kymo_naming_name))

/* `expected` NULL: a number. */
static void assert_text(const struct kymo_naming *naming, int64_t value, const char *expected)
{
	char *text = kymo_naming_text(naming, value);

	if (expected)
		assert_string_equal(text ? text : "(none)", expected);
	else
		assert_null(text);
	free(text);
}

static void values_have_the_first_of_their_names(void **state)
{
	struct kymo_naming *naming =
		NAMING(NAME("BUSY", 5), NAME("GONE", -1), NAME("IDLE", 0), NAME("ACTIVE", 5), NAME("MOST", INT64_MAX));

	assert_int_equal(naming->n, 4);
	assert_text(naming, 5, "BUSY");
	assert_text(naming, -1, "GONE");
	assert_text(naming, 0, "IDLE");
	assert_text(naming, INT64_MAX, "MOST");
	assert_text(naming, 4, NULL);
	assert_text(naming, INT64_MIN, NULL);
	kymo_naming_release(naming);
	assert_text(NULL, 0, NULL);
}

static void flags_are_joined_where_all_have_names(void **state)
{
	struct kymo_naming *naming =
		NAMING(NAME("NONE", 0), NAME("READ", 1), NAME("WRITE", 2), NAME("TOP", (int64_t)(UINT64_C(1) << 62)));

	assert_text(naming, 0, "NONE");
	assert_text(naming, 2, "WRITE");
	assert_text(naming, 3, "READ | WRITE");
	assert_text(naming, (int64_t)(UINT64_C(1) << 62 | 1), "READ | TOP");
	assert_text(naming, 4, NULL);
	assert_text(naming, 7, NULL);
	kymo_naming_release(naming);
	naming = NAMING(NAME("READ", 1), NAME("WRITE", 2));
	assert_text(naming, 3, "READ | WRITE");
	assert_text(naming, 0, NULL);
	kymo_naming_release(naming);
}

static void states_are_no_flags(void **state)
{
	struct kymo_naming *three = NAMING(NAME("RED", 0), NAME("GREEN", 1), NAME("BLUE", 2));
	struct kymo_naming *more = NAMING(NAME("A", 1), NAME("B", 2), NAME("C", 3), NAME("D", 4));

	assert_text(three, 3, NULL);
	assert_text(more, 5, NULL);
	kymo_naming_release(three);
	kymo_naming_release(more);
}

static void names_are_bounded(void **state)
{
	struct kymo_naming *naming = kymo_naming_create();
	char name[KYMO_NAMING_NAME_MAX + 10];

	assert_int_equal(kymo_naming_add(naming, "", 0, 1), -E2BIG);
	memset(name, 'x', sizeof(name));
	assert_int_equal(kymo_naming_add(naming, name, sizeof(name), 0), 0);
	assert_int_equal(strlen(kymo_naming_find(naming, 0)), KYMO_NAMING_NAME_MAX);
	for (int i = 1; i < KYMO_NAMING_NAMES_MAX; i++)
		assert_int_equal(kymo_naming_add(naming, "name", 4, -i), 0);
	assert_int_equal(kymo_naming_add(naming, "one more", 8, 1), -E2BIG);
	assert_int_equal(kymo_naming_add(naming, "known", 5, -7), 0);
	assert_text(naming, -7, "name");
	kymo_naming_release(kymo_naming_share(naming));
	assert_text(naming, -7, "name");
	kymo_naming_release(naming);
	kymo_naming_release(NULL);
}

static void joined_names_are_bounded(void **state)
{
	struct kymo_naming *naming = kymo_naming_create();
	char name[KYMO_NAMING_NAME_MAX + 1] = { 0 }, *text;

	memset(name, 'x', KYMO_NAMING_NAME_MAX - 2); /* four with three " | " are 1,021 bytes */
	for (int bit = 0; bit < 64; bit++)
		assert_int_equal(kymo_naming_add(naming, name, strlen(name), (int64_t)(UINT64_C(1) << bit)), 0);
	text = kymo_naming_text(naming, 15);
	assert_int_equal(strlen(text), 1021);
	free(text);
	assert_text(naming, 16 + 15, NULL);
	assert_text(naming, -1, NULL);
	kymo_naming_release(naming);
}

static void truth_values_have_names(void **state)
{
	struct kymo_naming *truth = kymo_naming_truth();

	assert_text(truth, 0, "false");
	assert_text(truth, 1, "true");
	assert_text(truth, 2, NULL);
	assert_text(truth, 3, NULL);
	kymo_naming_release(truth);
	assert_text(kymo_naming_truth(), 1, "true");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_the_first_of_their_names),
		cmocka_unit_test(flags_are_joined_where_all_have_names),
		cmocka_unit_test(states_are_no_flags),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(joined_names_are_bounded),
		cmocka_unit_test(truth_values_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
