#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/types.h"

static void every_name_parses_back_and_tells_what_the_type_is(void **state)
{
	for (int type = 0; type < KYMO_N_TYPES; type++) {
		const char *name = kymo_type_name((enum kymo_type)type);

		assert_int_equal(kymo_type_parse(name, (uint32_t)strlen(name)), type);
		assert_int_equal(kymo_type_parse_any(name, (uint32_t)strlen(name)), type);
		assert_true(kymo_type_is_integer((enum kymo_type)type));
		assert_int_equal(kymo_type_size((enum kymo_type)type) * 8, atoi(name + 1));
		assert_int_equal(kymo_type_is_signed((enum kymo_type)type), name[0] == 's');
		assert_int_equal(kymo_type_is_hex((enum kymo_type)type), name[0] == 'x');
	}
}

static void strings_and_doubles_have_names_that_specs_do_not_know(void **state)
{
	static const struct {
		enum kymo_type type;
		const char *name;
		unsigned int size;
	} cases[] = { { KYMO_TYPE_STRING, "string", 1 }, { KYMO_TYPE_F64, "f64", 8 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t length = (uint32_t)strlen(cases[i].name);

		assert_string_equal(kymo_type_name(cases[i].type), cases[i].name);
		assert_int_equal(kymo_type_parse_any(cases[i].name, length), cases[i].type);
		assert_int_equal(kymo_type_parse(cases[i].name, length), -1);
		assert_int_equal(kymo_type_size(cases[i].type), cases[i].size);
		assert_false(kymo_type_is_integer(cases[i].type));
		assert_false(kymo_type_is_signed(cases[i].type));
		assert_false(kymo_type_is_hex(cases[i].type));
	}
}

static void what_is_no_name_is_refused(void **state)
{
	static const char *const names[] = { "", "u", "u1", "u128", "U8", "u8 ", "64", "x", "char" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(kymo_type_parse(names[i], (uint32_t)strlen(names[i])), -1);
		assert_int_equal(kymo_type_parse_any(names[i], (uint32_t)strlen(names[i])), -1);
	}
	assert_int_equal(kymo_type_parse("u64", 2), -1);
	assert_int_equal(kymo_type_parse("u8x", 2), KYMO_TYPE_U8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_parses_back_and_tells_what_the_type_is),
		cmocka_unit_test(strings_and_doubles_have_names_that_specs_do_not_know),
		cmocka_unit_test(what_is_no_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
