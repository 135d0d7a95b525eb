/* Memory of all sizes is zeroed, writable to its end, and given back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/large.h"

#define MIB ((size_t)1 << 20)

static const size_t sizes[] = {
	0,       1,           4095,    65535,       65536,       100001,  MIB - 1,         MIB,
	MIB + 1, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB - 1, 3 * MIB, 9 * MIB + 12345,
};

static void check(void *(*allocate)(size_t size), void (*release)(void *memory, size_t size))
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *memory = allocate(sizes[i]), *others = allocate(sizes[i]);

		assert_non_null(memory);
		assert_non_null(others);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(memory[k], 0);
		memset(memory, 0xff, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k += 1000)
			assert_int_equal(others[k], 0);
		release(memory, sizes[i]);
		release(others, sizes[i]);
	}
	release(NULL, 1);
	release(NULL, 9 * MIB);
	assert_null(allocate(SIZE_MAX / 4));
	assert_null(allocate(SIZE_MAX - 5));
}

static void large_memory_is_zeroed_and_whole(void **state)
{
	check(kymo_large_alloc, kymo_large_free);
}

static void sparse_memory_is_zeroed_and_whole(void **state)
{
	check(kymo_sparse_alloc, kymo_sparse_free);
	check(kymo_sparse_alloc_to_end, kymo_sparse_free);
}

static void what_is_freed_is_unmapped(void **state)
{
	const size_t size = 9 * MIB + 12345;
	uint8_t *memory = kymo_large_alloc(size);
	unsigned char is_in[1];

	assert_int_equal(mincore(memory, 1, is_in), 0);
	kymo_large_free(memory, size);
	assert_int_equal(mincore(memory, 1, is_in), -1);
	assert_int_equal(mincore(memory + (size & ~(size_t)4095), 1, is_in), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_memory_is_zeroed_and_whole),
		cmocka_unit_test(sparse_memory_is_zeroed_and_whole),
		cmocka_unit_test(what_is_freed_is_unmapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
