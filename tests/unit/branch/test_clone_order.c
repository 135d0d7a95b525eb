/*
 * Jumps into clones are written one by one, and the recorder may die between two: after each the functions return what
 * they return without clones.
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

#define N_KERNELS (sizeof(kernels) / sizeof(kernels[0]))

struct called {
	long (*function)(long);
	long argument, result;
};

static size_t find_kernels(const struct clones *clones, struct called called[N_KERNELS])
{
	size_t n = 0;

	for (size_t i = 0; i < N_KERNELS; i++) {
		*(void **)&called[n].function = dlsym(clones->handle, kernels[i].name);
		called[n].argument = kernels[i].argument;
		if (!called[n].function)
			continue;
		called[n].result = called[n].function(called[n].argument);
		n++;
	}
	return n;
}

static void run(const struct called *called, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(called[i].function(called[i].argument), called[i].result);
}

static void write_one(const struct clones *clones, const struct kymo_clones_write *write, const uint8_t *bytes)
{
	uint8_t *text = (uint8_t *)(write->vaddr + clones->bias);

	memcpy(text, bytes, write->size);
	__builtin___clear_cache((char *)text, (char *)text + write->size);
}

static void write_all(const struct clones *clones)
{
	const struct kymo_clones_write *writes;
	struct called called[N_KERNELS];
	size_t n_writes, n = find_kernels(clones, called);

	writes = kymo_clones_writes(clones->all, &n_writes);
	assert_true(n && n_writes);
	for (size_t i = 0; i < n_writes; i++) {
		write_one(clones, &writes[i], writes[i].bytes);
		run(called, n);
	}
	for (size_t i = n_writes; i-- > 0;) {
		write_one(clones, &writes[i], writes[i].original);
		run(called, n);
	}
}

static void test_after_each_write_functions_do_what_they_do(void **state)
{
	static const char *const libraries[] = {
		"gcc-O0",       "gcc-O2",           "gcc-O3",           "clang-O0",
		"clang-O2",     "clang-O3",         "throw-g++-O0",     "throw-g++-O2",
		"throw-g++-O3", "throw-clang++-O0", "throw-clang++-O2", "throw-clang++-O3",
	};

	if (!getenv("KYMO_TARGETS"))
		skip();
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		struct clones clones;
		char path[512];

		snprintf(path, sizeof(path), "%s/libkernels-%s.so", getenv("KYMO_TARGETS"), libraries[i]);
		if (!clones_open(path, false, CLONES_IN_PLACE, &clones))
			continue;
		clones_ring_begin();
		write_all(&clones);
		clones_close(&clones);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_each_write_functions_do_what_they_do),
	};

	return cmocka_run_group_tests_name("clone_order", tests, NULL, NULL);
}
