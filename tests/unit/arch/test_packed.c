/* An entry map that was packed and unpacked is the same map; what is damaged, or of another module, is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/map.h"
#include "base/large.h"
#include "load.h"

struct packed {
	struct loaded libc;
	struct kymo_entry_map *map;
	uint8_t *bytes;
	size_t size;
};

static int pack(void **state)
{
	struct packed *packed = calloc(1, sizeof(*packed));
	void *bytes;

	assert_non_null(packed);
	if (!load("/lib/x86_64-linux-gnu/libc.so.6", &packed->libc)) {
		free(packed);
		return 0;
	}
	assert_int_equal(kymo_entry_map_create(&packed->libc.code, &packed->map), 0);
	assert_int_equal(kymo_entry_map_pack(packed->map, &bytes, &packed->size), 0);
	packed->bytes = bytes;
	*state = packed;
	return 0;
}

static int drop(void **state)
{
	struct packed *packed = *state;

	if (packed) {
		free(packed->bytes);
		kymo_entry_map_destroy(packed->map);
		unload(&packed->libc);
	}
	free(packed);
	return 0;
}

static struct packed *packed_of(void **state)
{
	if (!*state) {
		print_message("skipped: there is no /lib/x86_64-linux-gnu/libc.so.6\n");
		skip();
	}
	return *state;
}

/* kymo_entry_map_unpack() of a copy, which a map that comes of it owns. */
static int unpack(const struct kymo_module_code *code, const void *bytes, size_t size, struct kymo_entry_map **ret)
{
	void *copy = kymo_large_alloc(size);
	int err;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	err = kymo_entry_map_unpack(code, copy, size, ret);
	if (err)
		kymo_large_free(copy, size);
	return err;
}

static void an_unpacked_map_is_the_one_that_was_packed(void **state)
{
	struct packed *packed = packed_of(state);
	const struct kymo_module_code *code = &packed->libc.code;
	struct kymo_entry_map *map;
	size_t size, entered = 0;
	void *again;

	assert_int_equal(unpack(code, packed->bytes, packed->size, &map), 0);
	for (size_t k = 0; k < code->n_text; k++) {
		for (uint64_t i = 0; i < code->text[k].size; i++) {
			uint64_t vaddr = code->text[k].vaddr + i;

			if (kymo_entry_map_has(map, vaddr) != kymo_entry_map_has(packed->map, vaddr))
				fail_msg("0x%llx differs", (unsigned long long)vaddr);
			entered += kymo_entry_map_has(map, vaddr);
		}
	}
	assert_true(entered > 10000);
	assert_int_equal(kymo_entry_map_pack(map, &again, &size), 0);
	assert_int_equal(size, packed->size);
	assert_memory_equal(again, packed->bytes, size);
	free(again);
	kymo_entry_map_destroy(map);
}

static void bytes_that_end_early_or_go_on_are_refused(void **state)
{
	struct packed *packed = packed_of(state);
	const size_t sizes[] = { 0, 1, 47, 48, 4096, packed->size - 1, packed->size + 1 };
	uint8_t *longer = calloc(1, packed->size + 1);
	struct kymo_entry_map *map;

	assert_non_null(longer);
	memcpy(longer, packed->bytes, packed->size);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(unpack(&packed->libc.code, longer, sizes[i], &map), -EINVAL);
	free(longer);
}

static void counts_in_the_head_that_lie_are_refused(void **state)
{
	struct packed *packed = packed_of(state);
	struct kymo_entry_map *map;

	for (size_t i = 0; i < 48; i++) {
		uint8_t kept = packed->bytes[i];

		for (unsigned int bit = 0; bit < 8; bit++) {
			packed->bytes[i] = kept ^ (uint8_t)(1u << bit);
			assert_int_equal(unpack(&packed->libc.code, packed->bytes, packed->size, &map), -EINVAL);
		}
		packed->bytes[i] = kept;
	}
}

static void a_map_of_another_module_is_refused(void **state)
{
	struct packed *packed = packed_of(state);
	struct kymo_module_code other = packed->libc.code;
	struct kymo_entry_map *map;

	other.n_functions--;
	assert_int_equal(unpack(&other, packed->bytes, packed->size, &map), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unpacked_map_is_the_one_that_was_packed),
		cmocka_unit_test(bytes_that_end_early_or_go_on_are_refused),
		cmocka_unit_test(counts_in_the_head_that_lie_are_refused),
		cmocka_unit_test(a_map_of_another_module_is_refused),
	};

	return cmocka_run_group_tests(tests, pack, drop);
}
