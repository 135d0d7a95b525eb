#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

struct keys {
	KYMO_VEC(uint64_t) items;
	struct kymo_index index;
	unsigned int hash_bits;
};

static uint64_t hash_of(const struct keys *keys, uint64_t key)
{
	return (key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & ((UINT64_C(1) << keys->hash_bits) - 1);
}

static uint32_t find(const struct keys *keys, uint64_t key)
{
	return kymo_index_find(&keys->index, hash_of(keys, key), i, keys->items.items[i - 1] == key);
}

static void add(struct keys *keys, uint64_t key)
{
	assert_true(kymo_index_reserve(&keys->index, keys->items.n, i, hash_of(keys, keys->items.items[i - 1])));
	assert_true(kymo_vec_push(&keys->items, key));
	kymo_index_put(&keys->index, hash_of(keys, key), keys->items.n);
}

/* With fewer hashes than keys, too. */
static void each_item_is_found_by_its_number_at_every_size(void **state)
{
	for (unsigned int bits = 0; bits <= 32; bits += 4) {
		struct keys keys = { .hash_bits = bits };

		for (uint32_t n = 0; n < 600; n++) {
			assert_int_equal(find(&keys, 7 * n), 0);
			add(&keys, 7 * n);
			assert_true(keys.index.size >= 2 * keys.items.n);
			for (uint32_t i = 0; i <= n; i += n < 70 || i + 70 > n ? 1 : 70)
				assert_int_equal(find(&keys, 7 * i), i + 1);
			assert_int_equal(find(&keys, 7 * n + 1), 0);
		}
		kymo_index_deinit(&keys.index);
		assert_int_equal(find(&keys, 7), 0);
		kymo_vec_deinit(&keys.items);
	}
}

static void an_empty_index_has_nothing(void **state)
{
	struct kymo_index index = { 0 };

	assert_int_equal(kymo_index_find(&index, 1, i, i == i), 0);
	kymo_index_deinit(&index);
}

static void pairs_hash_by_both_numbers(void **state)
{
	assert_true(kymo_hash_pair(1, 2) != kymo_hash_pair(2, 1));
	assert_true(kymo_hash_pair(0, 0) != kymo_hash_pair(0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item_is_found_by_its_number_at_every_size),
		cmocka_unit_test(an_empty_index_has_nothing),
		cmocka_unit_test(pairs_hash_by_both_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
