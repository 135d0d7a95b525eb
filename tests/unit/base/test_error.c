#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void an_error_has_its_code_and_sentence(void **state)
{
	struct kymo_error *error = kymo_error_create(KYMO_ERROR_UNSAFE, "%s+0x%x: no proof", "libc", 18);

	assert_int_equal(error->code, KYMO_ERROR_UNSAFE);
	assert_string_equal(error->message, "libc+0x12: no proof");
	kymo_error_destroy(error);
}

static void errno_values_become_codes_of_either_sign(void **state)
{
	static const struct {
		int err;
		enum kymo_error_code code;
	} cases[] = {
		{ EPERM, KYMO_ERROR_PERMISSION }, { EACCES, KYMO_ERROR_PERMISSION }, { ENOENT, KYMO_ERROR_NOT_FOUND },
		{ ESRCH, KYMO_ERROR_GONE },       { ENOMEM, KYMO_ERROR_NO_MEMORY },  { EBUSY, KYMO_ERROR_BUSY },
		{ EIO, KYMO_ERROR_FAILED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int sign = -1; sign <= 1; sign += 2) {
			struct kymo_error *error = kymo_error_errno(sign * cases[i].err, "open %s", "x");

			assert_int_equal(error->err, cases[i].err);
			assert_int_equal(error->code, cases[i].code);
			assert_memory_equal(error->message, "open x: ", 8);
			assert_string_equal(error->message + 8, strerror(cases[i].err));
			kymo_error_destroy(error);
		}
	}
}

static void a_prefix_keeps_the_code(void **state)
{
	struct kymo_error *error = kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", 7);

	error = kymo_error_prefix(error, "detach");
	error = kymo_error_prefix(error, "kymo %d", 1);
	assert_int_equal(error->code, KYMO_ERROR_GONE);
	assert_string_equal(error->message, "kymo 1: detach: process 7 has ended");
	kymo_error_destroy(error);
}

static void success_and_lack_of_memory_pass_through(void **state)
{
	assert_null(kymo_error_prefix(NULL, "detach"));
	assert_ptr_equal(kymo_error_prefix(&kymo_error_no_memory, "detach"), &kymo_error_no_memory);
	kymo_error_destroy(NULL);
	kymo_error_destroy(&kymo_error_no_memory);
	assert_string_equal(kymo_error_no_memory.message, "out of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_has_its_code_and_sentence),
		cmocka_unit_test(errno_values_become_codes_of_either_sign),
		cmocka_unit_test(a_prefix_keeps_the_code),
		cmocka_unit_test(success_and_lack_of_memory_pass_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
