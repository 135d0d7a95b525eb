/* gdb's numbers of signals. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdb/signals.h"

static void known_ones_are_gdbs(void **state)
{
	assert_int_equal(gdb_signal_of(0), 0);
	assert_int_equal(gdb_signal_of(SIGTRAP), 5);
	assert_int_equal(gdb_signal_of(SIGUSR1), 30);
	assert_int_equal(gdb_signal_of(SIGBUS), 10);
	assert_int_equal(gdb_signal_of(SIGCHLD), 20);
	assert_int_equal(gdb_signal_of(34), 46);
	assert_int_equal(gdb_signal_of(64), 78);
	assert_int_equal(gdb_signal_of(-1), 143);
	assert_int_equal(gdb_signal_of(1000), 143);
}

static void each_comes_back(void **state)
{
	for (int number = 1; number <= 64; number++)
		if (gdb_signal_of(number) != 143)
			assert_int_equal(gdb_signal_to(gdb_signal_of(number)), number);
	assert_int_equal(gdb_signal_to(143), 0);
	assert_int_equal(gdb_signal_to(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_ones_are_gdbs),
		cmocka_unit_test(each_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
