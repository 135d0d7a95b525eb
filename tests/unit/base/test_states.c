#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/states.h"

enum door { OPEN, SHUT, LOCKED };

static const struct kymo_state_row doors[] = {
	[OPEN] = { "open", KYMO_STATE(SHUT) },
	[SHUT] = { "shut", KYMO_STATE(OPEN) | KYMO_STATE(LOCKED) },
	[LOCKED] = { "locked", KYMO_STATE(SHUT) },
};

#define N_DOORS kymo_countof(doors)

static void the_table_says_what_may_follow(void **state)
{
	assert_true(kymo_state_may_follow(doors, N_DOORS, OPEN, SHUT));
	assert_true(kymo_state_may_follow(doors, N_DOORS, SHUT, LOCKED));
	assert_false(kymo_state_may_follow(doors, N_DOORS, OPEN, LOCKED));
	assert_false(kymo_state_may_follow(doors, N_DOORS, OPEN, OPEN));
}

static void what_is_no_state_follows_nothing(void **state)
{
	assert_false(kymo_state_may_follow(doors, N_DOORS, OPEN, N_DOORS));
	assert_false(kymo_state_may_follow(doors, N_DOORS, N_DOORS, OPEN));
	assert_false(kymo_state_may_follow(doors, N_DOORS, 99, 99));
}

static int status_after(unsigned int from, unsigned int to)
{
	pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		kymo_state_check("door", doors, N_DOORS, from, to);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_wrong_change_ends_builds_with_sanitizers_alone(void **state)
{
	const int status = status_after(OPEN, LOCKED);

	assert_int_equal(status_after(OPEN, SHUT), 0);
	if (KYMO_CHECKS_STATES)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	else
		assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_says_what_may_follow),
		cmocka_unit_test(what_is_no_state_follows_nothing),
		cmocka_unit_test(a_wrong_change_ends_builds_with_sanitizers_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
