/*
 * Clones run: all functions of a library are cloned, and what they record is what single steps of the functions
 * themselves pass, block by block; and they return what these return.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clones.h"

static const struct {
	const char *name;
	long argument;
} kernels[] = {
	{ "kernel_qsort", 1 },  { "kernel_sort", 1 },  { "kernel_interpret", 1 }, { "kernel_tokenize", 1 },
	{ "kernel_fib", 1 },    { "kernel_lz", 1 },    { "kernel_find", 26 },     { "kernel_floats", 2 },
	{ "kernel_labels", 9 }, { "kernel_throw", 4 },
};

static void print_around(const struct clones *clones, const char *what, const uint32_t *list, size_t n, size_t at)
{
	printf("%s:", what);
	for (size_t i = at < 5 ? 0 : at - 5; i < n && i < at + 5; i++)
		printf(" 0x%lx", clones->sites[list[i]] - clones->bias);
	printf("\n");
}

static void compare(const struct clones *clones, const char *what, const uint32_t *expected, size_t n_expected)
{
	static uint32_t found[KYMO_CLONE_RING_SIZE / 4];
	size_t n = clones_ring_read(found), all = KYMO_CLONE_RING_SIZE / 4;

	if (n_expected > all) {
		expected += n_expected - all;
		n_expected = all;
	}
	for (size_t i = 0; i < n && i < n_expected; i++) {
		if (found[i] == expected[i])
			continue;
		printf("%s: entry %zu\n", what, i);
		print_around(clones, "steps ", expected, n_expected, i);
		print_around(clones, "clones", found, n, i);
		fail();
	}
	if (n != n_expected) {
		printf("%s: %zu blocks instead of %zu\n", what, n, n_expected);
		fail();
	}
}

/* Both ways to make calls have the same sites, and so one reference. */
static void compare_function(struct clones clones[2], const char *path, const char *name, long argument)
{
	long (*function)(long), expected_result;
	uint32_t *expected;
	char what[640];
	size_t n;

	*(void **)&function = dlsym(clones[0].handle, name);
	if (!function)
		return;
	snprintf(what, sizeof(what), "%s of %s", name, path);
	expected = clones_reference(&clones[0], function, argument, &n, &expected_result);
	/* Labels are not understood. */
	assert_true(n > 0 || !strcmp(name, "kernel_labels"));
	for (int way = CLONES_IN_PLACE; way <= CLONES_APART; way++) {
		long result;

		clones_put_in(&clones[way]);
		clones_ring_begin();
		result = function(argument);
		clones_take_out(&clones[way]);
		compare(&clones[way], what, expected, n);
		assert_int_equal(result, expected_result);
	}
	free(expected);
}

static void compare_kernels(const char *pattern, const char *const *compilers, size_t n_compilers)
{
	static const char *const levels[] = { "-O0", "-O2", "-O3" };
	size_t n_libraries = 0, n_levels = sizeof(levels) / sizeof(levels[0]);

	if (!getenv("KYMO_TARGETS"))
		skip();
	for (size_t i = 0; i < n_compilers * n_levels; i++) {
		struct clones clones[2];
		char path[512];

		snprintf(path, sizeof(path), pattern, getenv("KYMO_TARGETS"), compilers[i / n_levels],
			 levels[i % n_levels]);
		if (!clones_open(path, false, CLONES_IN_PLACE, &clones[0]))
			continue;
		assert_true(clones_open(path, false, CLONES_APART, &clones[1]));
		n_libraries++;
		for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
			compare_function(clones, path, kernels[k].name, kernels[k].argument);
		clones_close(&clones[1]);
		clones_close(&clones[0]);
	}
	if (!n_libraries)
		skip();
}

static void test_kernels_of_gcc(void **state)
{
	compare_kernels("%s/libkernels-%s%s.so", (const char *const[]){ "gcc" }, 1);
}

static void test_kernels_of_clang(void **state)
{
	compare_kernels("%s/libkernels-%s%s.so", (const char *const[]){ "clang" }, 1);
}

static void test_exceptions(void **state)
{
	compare_kernels("%s/libkernels-throw-%s%s.so", (const char *const[]){ "g++", "clang++" }, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_of_gcc),
		cmocka_unit_test(test_kernels_of_clang),
		cmocka_unit_test(test_exceptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
