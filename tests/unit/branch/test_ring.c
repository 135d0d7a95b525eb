/* Rings of branches, and the user's words for code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "branch/branch.h"
#include "branch/ring.h"

static void fill(struct branch_ring *ring, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		branch_ring_add(ring, &(struct kymo_branch){ .from = i }, SIZE_MAX);
}

static void test_the_newest_are_kept(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 63, 64, 65, 99, 100, 101, 250, 1000 };

	for (size_t i = 0; i < kymo_countof(sizes); i++) {
		struct branch_ring ring = { .max = 100 };
		const uint64_t kept = sizes[i] < 100 ? sizes[i] : 100;

		fill(&ring, sizes[i]);
		assert_int_equal(ring.n, sizes[i]);
		assert_int_equal(branch_ring_kept(&ring), kept);
		for (uint64_t k = 0; k < kept; k++)
			assert_int_equal(branch_ring_at(&ring, k)->from, sizes[i] - kept + k);
		branch_ring_deinit(&ring);
		assert_int_equal(branch_ring_kept(&ring), 0);
	}
}

static void test_words(void **state)
{
	static const struct {
		const char *text, *file, *functions;
	} rows[] = {
		{ "all", NULL, NULL },
		{ "./app", "./app", NULL },
		{ "libc:mem*", "libc", "mem*" },
		{ "./app:shop::Cart::add", "./app", "shop::Cart::add" },
	};
	static const char *const wrong[] = { "", ":", "app:", ":main", "app:main size=%di" };

	for (size_t i = 0; i < kymo_countof(rows); i++) {
		struct kymo_branch_spec spec;

		assert_null(kymo_branch_spec_parse(rows[i].text, &spec));
		assert_int_equal(!spec.file, !rows[i].file);
		assert_int_equal(!spec.functions, !rows[i].functions);
		if (rows[i].file)
			assert_string_equal(spec.file, rows[i].file);
		if (rows[i].functions)
			assert_string_equal(spec.functions, rows[i].functions);
		kymo_branch_spec_deinit(&spec);
	}
	for (size_t i = 0; i < kymo_countof(wrong); i++) {
		struct kymo_branch_spec spec;
		struct kymo_error *error = kymo_branch_spec_parse(wrong[i], &spec);

		assert_non_null(error);
		assert_int_equal(error->code, KYMO_ERROR_USAGE);
		kymo_error_destroy(error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_are_kept),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
