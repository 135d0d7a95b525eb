/* Registers as gdb numbers them, and values in images of the extended state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/registers.h"

enum { SIZE = 2696 };

static const struct kymo_register *find(const struct kymo_register *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	fail_msg("no register %s", name);
	return NULL;
}

static void numbers_are_gdbs(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];
	size_t n = kymo_registers_list(3, list);

	assert_int_equal(n, 24 + 8 + 8 + 17 + 1 + 2);
	assert_string_equal(list[KYMO_REGISTER_PC].name, "rip");
	assert_string_equal(list[KYMO_REGISTER_SP].name, "rsp");
	assert_string_equal(list[kymo_registers_expedited[0]].name, "rbp");
	assert_string_equal(list[24].name, "st0");
	assert_string_equal(list[40].name, "xmm0");
	assert_string_equal(list[56].name, "mxcsr");
}

static void no_register_is_written_beyond_the_list(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];

	assert_true(kymo_registers_list(UINT64_MAX, list) <= KYMO_REGISTERS_MAX);
}

static void what_is_initial_reads_as_that(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];
	size_t n = kymo_registers_list(3, list);
	uint8_t image[SIZE], value[64] = { 0 };
	uint32_t number;

	memset(image, 0x55, sizeof(image));
	memset(image + 512, 0, 64);
	assert_true(kymo_xstate_read(find(list, n, "xmm3"), image, SIZE, value));
	for (int i = 0; i < 16; i++)
		assert_int_equal(value[i], 0);
	assert_true(kymo_xstate_read(find(list, n, "fctrl"), image, SIZE, value));
	memcpy(&number, value, 4);
	assert_int_equal(number, 0x37f);
	assert_true(kymo_xstate_read(find(list, n, "mxcsr"), image, SIZE, value));
	memcpy(&number, value, 4);
	assert_int_equal(number, 0x1f80);
	assert_true(kymo_xstate_read(find(list, n, "ftag"), image, SIZE, value));
	memcpy(&number, value, 4);
	assert_int_equal(number, 0xffff);
}

static void what_is_written_is_in_use(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];
	size_t n = kymo_registers_list(3, list);
	uint8_t image[SIZE], value[64];
	uint64_t used;

	memset(image, 0x55, sizeof(image));
	memset(image + 512, 0, 64);
	memset(value, 7, sizeof(value));
	assert_true(kymo_xstate_write(find(list, n, "xmm3"), image, SIZE, value));
	memcpy(&used, image + 512, sizeof(used));
	assert_int_equal(used, 2);
	assert_true(kymo_xstate_read(find(list, n, "xmm3"), image, SIZE, value));
	assert_int_equal(value[15], 7);
	assert_true(kymo_xstate_read(find(list, n, "xmm4"), image, SIZE, value));
	assert_int_equal(value[0], 0);
}

static void an_image_that_is_too_short_is_refused(void **state)
{
	struct kymo_register list[KYMO_REGISTERS_MAX];
	size_t n = kymo_registers_list(3, list);
	uint8_t image[SIZE] = { 0 }, value[64] = { 0 };

	assert_false(kymo_xstate_read(find(list, n, "xmm15"), image, 400, value));
	assert_false(kymo_xstate_write(find(list, n, "xmm15"), image, 400, value));
	assert_int_equal(kymo_xstate_components(image, 500), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_gdbs),
		cmocka_unit_test(no_register_is_written_beyond_the_list),
		cmocka_unit_test(what_is_initial_reads_as_that),
		cmocka_unit_test(what_is_written_is_in_use),
		cmocka_unit_test(an_image_that_is_too_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
