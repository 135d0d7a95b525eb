#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "syscall/copies.h"
#include "syscall/names.h"

static void test_all_copies_are_in_range(void **state)
{
	static const size_t sizes[] = { 0, 1, 32, KYMO_SYSCALL_COPIED_MAX };
	struct kymo_copy copies[KYMO_COPIES_MAX];

	for (uint64_t number = 0; number <= KYMO_SYSCALL_MAX; number++)
		for (size_t s = 0; s < 2 * kymo_countof(sizes); s++) {
			const size_t n = kymo_syscall_copies(number, s % 2, sizes[s / 2], copies);

			assert_in_range(n, 0, KYMO_COPIES_MAX);
			for (size_t i = 0; i < n; i++) {
				assert_in_range(copies[i].what, KYMO_COPY_BYTES, KYMO_COPY_STRINGS);
				assert_in_range(copies[i].arg, 0, KYMO_COPY_STACK);
				assert_in_range(copies[i].times, KYMO_COPY_ONCE, s % 2 ? KYMO_COPY_RESULT : 6);
				assert_in_range(copies[i].size, 0, KYMO_COPY_SIZE_MAX);
				assert_in_range(copies[i].max, 0, KYMO_COPY_SIZE_MAX);
			}
		}
}

/* A path is shown whole, as the call is made; what is read is there when it has returned, and -s bytes of it are shown.
 */
static void test_copies_are_made_when_they_are_shown(void **state)
{
	struct kymo_copy copies[KYMO_COPIES_MAX];

	assert_int_equal(kymo_syscall_copies(SYS_openat, false, 32, copies), 1);
	assert_int_equal(copies[0].what, KYMO_COPY_STRING);
	assert_int_equal(copies[0].arg, 1);
	assert_int_equal(copies[0].max, 4096 + 2);
	assert_int_equal(kymo_syscall_copies(SYS_openat, true, 32, copies), 0);
	assert_int_equal(kymo_syscall_copies(SYS_read, false, 32, copies), 0);
	assert_int_equal(kymo_syscall_copies(SYS_read, true, 32, copies), 1);
	assert_int_equal(copies[0].what, KYMO_COPY_BYTES);
	assert_int_equal(copies[0].arg, 1);
	assert_int_equal(copies[0].times, KYMO_COPY_RESULT);
	assert_int_equal(copies[0].max, 32);
}

/* The result of poll is shown with its descriptors, which are shown at the entry, too. */
static void test_a_result_is_shown_from_memory_too(void **state)
{
	struct kymo_copy copies[KYMO_COPIES_MAX];

	assert_int_equal(kymo_syscall_copies(SYS_poll, false, 32, copies), 1);
	assert_int_equal(kymo_syscall_copies(SYS_poll, true, 32, copies), 1);
	assert_int_equal(copies[0].times, 2);
	assert_int_equal(copies[0].size, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_copies_are_in_range),
		cmocka_unit_test(test_copies_are_made_when_they_are_shown),
		cmocka_unit_test(test_a_result_is_shown_from_memory_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
