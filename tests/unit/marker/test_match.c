#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "marker/match.h"

static bool matches(const char *glob)
{
	return kymo_marker_matches(glob, "/usr/lib/libshop-2.1.so", "libshop.so.2", "shop", "order_begin");
}

static void a_glob_means_names_of_any_provider(void **state)
{
	assert_true(matches("order_begin"));
	assert_true(matches("order_*"));
	assert_true(matches("*"));
	assert_true(matches("order_[a-c]*"));
	assert_true(matches("order_[[:alpha:]]egin"));
	assert_false(matches("order"));
	assert_false(matches("shop"));
	assert_false(matches(""));
}

static void what_stands_before_a_colon_is_the_provider(void **state)
{
	assert_true(matches("shop:order_begin"));
	assert_true(matches("sh*:order_*"));
	assert_true(matches("*:*"));
	assert_true(matches("s[[:lower:]]op:*"));
	assert_false(matches("shop:order"));
	assert_false(matches("sho:order_begin"));
	assert_false(matches("shop:"));
	assert_false(matches(":order_begin"));
}

static void or_it_is_the_module(void **state)
{
	assert_true(matches("libshop:order_begin"));
	assert_true(matches("libshop.so.2:order_*"));
	assert_true(matches("/usr/lib/libshop-2.1.so:*"));
	assert_true(matches("/lib/libshop-2.1.so:*"));
	assert_false(matches("libsho:order_begin"));
	assert_false(matches("/usr/lib/libother.so:*"));
}

static void a_colon_in_a_set_or_quoted_parts_nothing(void **state)
{
	assert_false(matches("order_[b:]egin:"));
	assert_true(matches("order_[b:]egin"));
	assert_true(matches("order_[]b:]egin"));
	assert_true(matches("order_[!:]egin"));
	assert_false(matches("shop\\:order_begin"));
	assert_true(kymo_marker_matches("a\\:b", "/bin/app", NULL, "shop", "a:b"));
	assert_true(kymo_marker_matches("shop:order_start|shop:order_begin", "/bin/app", NULL, "shop", "order_begin"));
	assert_true(kymo_marker_matches("order_b*|", "/bin/app", NULL, "shop", "order_begin"));
	assert_false(kymo_marker_matches("shop:order_start|bank:order_begin", "/bin/app", NULL, "shop", "order_begin"));
	assert_true(kymo_marker_matches("[|]x", "/bin/app", NULL, "shop", "|x"));
	assert_true(kymo_marker_matches("shop:[x:order", "/bin/app", NULL, "shop:[x", "order"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_glob_means_names_of_any_provider),
		cmocka_unit_test(what_stands_before_a_colon_is_the_provider),
		cmocka_unit_test(or_it_is_the_module),
		cmocka_unit_test(a_colon_in_a_set_or_quoted_parts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
