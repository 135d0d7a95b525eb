/* The cache of chains: it has what was put last, for the same bytes alone, until it forgets. */
#include "record/stack_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "record/stack_number.h"
#include "wire/event.h"

#define HEAD sizeof(struct kymo_wire_chain)

static uint64_t words[(HEAD + 8 * KYMO_WIRE_CHAIN_MAX) / 8 + 1];

/* Unaligned, as in a record, and of 16 frames. */
static struct stack_bytes stack_of(size_t n, uint64_t first)
{
	uint8_t *bytes = (uint8_t *)words + 1;

	memcpy(bytes, &first, sizeof(first));
	return (struct stack_bytes){ .bytes = bytes, .size = (uint16_t)(HEAD + 8 * n), .is_chain = true, .frames = 16 };
}

static void test_a_chain_is_found_by_all_of_its_bytes(void **state)
{
	struct stack_cache *cache = stack_cache_create();
	struct stack_bytes stack = stack_of(5, 1);

	assert_non_null(cache);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack_cache_put(cache, &stack, 42);
	assert_int_equal(stack_cache_find(cache, &stack), 42);
	stack = stack_of(6, 1);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack = stack_of(4, 1);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack = stack_of(5, 2);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack = stack_of(5, 1);
	stack_cache_put(cache, &stack, 43);
	assert_int_equal(stack_cache_find(cache, &stack), 43);
	stack_cache_forget(cache);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack_cache_destroy(cache);
}

/* Some are forgotten for others, and none is taken for another. */
static void test_many_chains_have_their_own_numbers(void **state)
{
	struct stack_cache *cache = stack_cache_create();
	size_t n_found = 0;

	assert_non_null(cache);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 1; i <= 1000; i++) {
			const struct stack_bytes stack = stack_of(i % (KYMO_WIRE_CHAIN_MAX + 1), i);
			const uint32_t number = stack_cache_find(cache, &stack);

			assert_true(!number || (round && number == i));
			stack_cache_put(cache, &stack, i);
			assert_int_equal(stack_cache_find(cache, &stack), i);
		}
	for (uint32_t i = 1; i <= 1000; i++) {
		const struct stack_bytes stack = stack_of(i % (KYMO_WIRE_CHAIN_MAX + 1), i);
		const uint32_t number = stack_cache_find(cache, &stack);

		assert_true(!number || number == i);
		n_found += number != 0;
	}
	assert_true(n_found > 50);
	stack_cache_destroy(cache);
}

static void test_copies_are_not_remembered(void **state)
{
	struct stack_cache *cache = stack_cache_create();
	struct stack_bytes stack = stack_of(5, 1);

	stack.is_chain = false;
	stack_cache_put(cache, &stack, 42);
	assert_int_equal(stack_cache_find(cache, &stack), 0);
	stack_cache_destroy(cache);
}

static void test_without_memory_nothing_is_remembered(void **state)
{
	const struct stack_bytes stack = stack_of(5, 1);

	stack_cache_put(NULL, &stack, 42);
	stack_cache_forget(NULL);
	assert_int_equal(stack_cache_find(NULL, &stack), 0);
	stack_cache_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_chain_is_found_by_all_of_its_bytes),
		cmocka_unit_test(test_many_chains_have_their_own_numbers),
		cmocka_unit_test(test_copies_are_not_remembered),
		cmocka_unit_test(test_without_memory_nothing_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
