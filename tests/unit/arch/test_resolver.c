/* What resolvers of indirect functions may return: those in resolver_code.S, which says it itself, and code at fixed
 * addresses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "arch/exits.h"
#include "arch/plan.h"
#include "base/cleanup.h"

struct named {
	const char *name;
	uint64_t start, end;
};

struct expected {
	uint64_t resolver, functions[3];
	const char *reason;
};

extern const uint8_t resolver_text[], resolver_text_end[];
extern const uint64_t resolver_got[];
extern const struct named __start_resolver_functions[], __stop_resolver_functions[];
extern const struct expected __start_resolver_expected[], __stop_resolver_expected[];

#define N_NAMED ((size_t)(__stop_resolver_functions - __start_resolver_functions))
#define N_EXPECTED ((size_t)(__stop_resolver_expected - __start_resolver_expected))
#define N_GOT 3

static struct kymo_extent functions[64];

static bool read_got(void *data, uint64_t vaddr, uint64_t *ret)
{
	uint64_t at = vaddr - (uint64_t)resolver_got;

	if (at >= N_GOT * sizeof(*resolver_got) || at % sizeof(*resolver_got))
		return false;
	*ret = resolver_got[at / sizeof(*resolver_got)];
	return true;
}

static bool read_nothing(void *data, uint64_t vaddr, uint64_t *ret)
{
	return false;
}

static const char *name_of(uint64_t vaddr)
{
	for (size_t i = 0; i < N_NAMED; i++)
		if (__start_resolver_functions[i].start == vaddr)
			return __start_resolver_functions[i].name;
	return "?";
}

static bool is_expected(const struct expected *expected, uint64_t vaddr)
{
	for (size_t i = 0; i < kymo_countof(expected->functions); i++)
		if (expected->functions[i] == vaddr)
			return true;
	return false;
}

static void check(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		  const struct expected *expected)
{
	kymo_cleanup_free uint64_t *found = NULL;
	struct kymo_refusal refusal = { .vaddr = 0 };
	const char *name = name_of(expected->resolver);
	size_t n = 0, n_expected = 0;
	int err = kymo_resolver_create(code, map, expected->resolver, read_got, NULL, &found, &n, &refusal);

	if (expected->reason) {
		if (err != -EPERM || !strstr(refusal.reason, expected->reason))
			fail_msg("%s: %d '%s', not '%s'", name, err, refusal.reason, expected->reason);
		return;
	}
	if (err)
		fail_msg("%s: %d '%s'", name, err, refusal.reason);
	for (size_t i = 0; i < kymo_countof(expected->functions); i++)
		n_expected += expected->functions[i] != 0;
	if (n != n_expected)
		fail_msg("%s: %zu functions, not %zu", name, n, n_expected);
	for (size_t i = 0; i < n; i++) {
		if (!is_expected(expected, found[i]))
			fail_msg("%s: %s is none of it", name, name_of(found[i]));
		assert_true(!i || found[i] > found[i - 1]);
	}
}

static void resolvers_return_what_the_source_says(void **state)
{
	const struct kymo_span text = { (uint64_t)resolver_text, resolver_text,
					(size_t)(resolver_text_end - resolver_text) };
	struct kymo_module_code code = {
		.text = &text,
		.n_text = 1,
		.functions = functions,
		.n_functions = N_NAMED,
		.position_independent = true,
	};
	struct kymo_entry_map *map;

	assert_in_range(N_NAMED, 1, kymo_countof(functions));
	assert_in_range(N_EXPECTED, 20, N_NAMED);
	for (size_t i = 0; i < N_NAMED; i++)
		functions[i] =
			(struct kymo_extent){ __start_resolver_functions[i].start, __start_resolver_functions[i].end };
	assert_int_equal(kymo_entry_map_create(&code, &map), 0);
	for (size_t i = 0; i < N_EXPECTED; i++)
		check(&code, map, &__start_resolver_expected[i]);
	kymo_entry_map_destroy(map);
}

/* mov $0x401000, %ecx; mov $0x401010, %eax; test %edi, %edi; cmove %ecx, %eax; ret */
static void constants_are_addresses_where_the_module_cannot_move(void **state)
{
	static const uint8_t bytes[] = { [0x00] = 0xc3, [0x10] = 0xc3, [0x20] = 0xb9, 0x00, 0x10, 0x40,
					 0x00,          0xb8,          0x10,          0x10, 0x40, 0x00,
					 0x85,          0xff,          0x0f,          0x44, 0xc1, 0xc3 };
	const struct kymo_span text = { 0x401000, bytes, sizeof(bytes) };
	struct kymo_extent extents[] = { { 0x401000, 0x401001 },
					 { 0x401010, 0x401011 },
					 { 0x401020, 0x401000 + sizeof(bytes) } };
	struct kymo_module_code code = { .text = &text, .n_text = 1, .functions = extents, .n_functions = 3 };
	kymo_cleanup_free uint64_t *found = NULL;
	struct kymo_refusal refusal = { .vaddr = 0 };
	struct kymo_entry_map *map;
	size_t n;

	assert_int_equal(kymo_entry_map_create(&code, &map), 0);
	assert_int_equal(kymo_resolver_create(&code, map, 0x401020, read_nothing, NULL, &found, &n, &refusal), 0);
	assert_int_equal(n, 2);
	assert_int_equal(found[0], 0x401000);
	assert_int_equal(found[1], 0x401010);
	code.position_independent = true;
	assert_int_equal(kymo_resolver_create(&code, map, 0x401020, read_nothing, NULL, &found, &n, &refusal), -EPERM);
	kymo_entry_map_destroy(map);
}

/* lea of 70 functions, one after the other. */
static void more_functions_than_are_counted_are_refused(void **state)
{
	static uint8_t bytes[0x1000];
	static struct kymo_extent extents[71];
	const struct kymo_span text = { 0x10000, bytes, sizeof(bytes) };
	struct kymo_module_code code = {
		.text = &text, .n_text = 1, .functions = extents, .n_functions = 71, .position_independent = true
	};
	struct kymo_refusal refusal = { .vaddr = 0 };
	struct kymo_entry_map *map;
	uint8_t *at = bytes + 0x800;
	uint64_t *found;
	size_t n;

	for (size_t i = 0; i < 70; i++) {
		int32_t distance = (int32_t)(16 * i) - (int32_t)(at - bytes) - 7;

		bytes[16 * i] = 0xc3;
		extents[i] = (struct kymo_extent){ 0x10000 + 16 * i, 0x10001 + 16 * i };
		memcpy(at, (uint8_t[]){ 0x48, 0x8d, 0x05 }, 3); /* lea distance(%rip), %rax */
		memcpy(at + 3, &distance, sizeof(distance));
		memcpy(at + 7, (uint8_t[]){ 0x74, 0x01, 0xc3 }, 3); /* je over; ret */
		at += 10;
	}
	extents[70] = (struct kymo_extent){ 0x10800, 0x10000 + (uint64_t)(at - bytes) + 1 };
	*at = 0xc3;
	assert_int_equal(kymo_entry_map_create(&code, &map), 0);
	assert_int_equal(kymo_resolver_create(&code, map, 0x10800, read_nothing, NULL, &found, &n, &refusal), -EPERM);
	kymo_entry_map_destroy(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolvers_return_what_the_source_says),
		cmocka_unit_test(constants_are_addresses_where_the_module_cannot_move),
		cmocka_unit_test(more_functions_than_are_counted_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
