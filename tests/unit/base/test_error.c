#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/caret.h"
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

static void retold(const char *text, size_t at, const char *typed, const char *expected)
{
	struct kymo_error *error = kymo_error_at(text, text + at, "no 'x'");

	error = kymo_error_retell(error, text, typed);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_string_equal(error->message, expected);
	kymo_error_destroy(error);
}

static void an_error_is_about_what_was_typed(void **state)
{
	struct kymo_error *other = kymo_error_at("other", "other", "bad");

	retold("./a:0x1482 x", 11, "./a:a.c:33 x", "column 12: no 'x'\n  ./a:a.c:33 x\n             ^");
	retold("./a:0x1482 x", 11, "./a:long.c:33 x", "column 15: no 'x'\n  ./a:long.c:33 x\n                ^");
	retold("./a:0x1482 x", 6, "./a:long.c:33 x", "column 5: no 'x'\n  ./a:long.c:33 x\n      ^");
	retold("\xc3\xa4:0x12 x", 8, "\xc3\xa4:b:7 x", "column 7: no 'x'\n  \xc3\xa4:b:7 x\n        ^");
	retold("p:e f:0x1 x", 2, "p:e f:g:12 x", "column 3: no 'x'\n  p:e f:g:12 x\n    ^");
	retold("f:0x1", 5, "f:g:12", "column 7: no 'x'\n  f:g:12\n        ^");
	retold("same x", 5, "same x", "column 6: no 'x'\n  same x\n       ^");
	other = kymo_error_retell(other, "f:0x1", "f:g:12");
	assert_string_equal(other->message, "column 1: bad\n  other\n  ^");
	kymo_error_destroy(other);
	other = kymo_error_create(KYMO_ERROR_USAGE, "a sentence");
	assert_ptr_equal(kymo_error_retell(other, "f:0x1", "f:g:12"), other);
	kymo_error_destroy(other);
	assert_null(kymo_error_retell(NULL, "f:0x1", "f:g:12"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_has_its_code_and_sentence),
		cmocka_unit_test(errno_values_become_codes_of_either_sign),
		cmocka_unit_test(a_prefix_keeps_the_code),
		cmocka_unit_test(an_error_is_about_what_was_typed),
		cmocka_unit_test(success_and_lack_of_memory_pass_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
