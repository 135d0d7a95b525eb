#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/signals.h"

static int told;

/* As a write that fails. */
static void react(int number)
{
	told = number;
	errno = EAGAIN;
}

static void a_handler_keeps_errno(void **state)
{
	cli_catch_signals(false, 0, react);
	errno = ENOENT;
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(told, SIGTERM);
	assert_int_equal(cli_last_signal(), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handler_keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
