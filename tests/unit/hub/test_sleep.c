/* Sleeping for a stop, with a timer whose signal ends the sleep. */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "arch/breakable.h"
#include "base/io.h"
#include "fixture.h"
#include "hub/launch.h"
#include "hub/local.h"
#include "hub/state.h"
#include "hub/thread/seize.h"

#define STATUS_SIZE 4096

static pid_t sleeping_child(void)
{
	const pid_t parent = getpid(), child = fork();

	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves none */
		while (getppid() == parent)
			pause();
		_exit(0); /* the test had ended before that */
	}
	return child;
}

static void a_sleep_for_a_stop_that_does_not_come_is_over_soon(void **state)
{
	struct hub_seizer seizer = { 0 };
	pid_t child = sleeping_child();

	for (int i = 0; i < 20; i++)
		assert_int_equal(hub_sleep_for_stop(&seizer, i % 2 ? child : 0, 1000000), -EINTR);
	kill(child, SIGKILL);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000000 - 1), 0);
	assert_int_equal(waitpid(child, NULL, 0), child); /* it was left for this */
	assert_int_equal(hub_sleep_for_stop(&seizer, 0, 1000000), -ECHILD);
	hub_seizer_deinit(&seizer);
}

static void slow_break_off(int number, siginfo_t *info, void *context)
{
	nanosleep(&(struct timespec){ 0, 3000000 }, NULL);
	kymo_break_call(context);
}

/* As where this process is traced, and each signal is looked at for longer than the sleep was to take. */
static void signals_that_take_long_do_not_keep_a_sleep_from_its_end(void **state)
{
	struct sigaction action = { .sa_sigaction = slow_break_off, .sa_flags = SA_SIGINFO | SA_RESTART }, before;
	struct hub_seizer seizer = { 0 };
	pid_t child = sleeping_child();
	int number = SIGRTMAX - 1;

	for (; sigaction(number, NULL, &before) || before.sa_handler == SIG_DFL; number--)
		assert_true(number > SIGRTMIN);
	assert_int_equal(sigaction(number, &action, NULL), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	assert_int_equal(sigaction(number, &before, NULL), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hub_seizer_deinit(&seizer);
}

static void the_timer_of_a_sleep_serves_the_next_ones(void **state)
{
	struct hub_seizer seizer = { 0 };
	pid_t child = sleeping_child();
	uint64_t fires_ns;

	kill(child, SIGKILL);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 900000000), 0);
	fires_ns = seizer.fires_ns;
	assert_true(fires_ns);
	for (int i = 0; i < 20; i++)
		assert_int_equal(hub_sleep_for_stop(&seizer, child, 900000000), 0);
	assert_true(seizer.fires_ns == fires_ns);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 100000000), 0); /* it must not last longer */
	assert_true(seizer.fires_ns < fires_ns);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hub_seizer_deinit(&seizer);
}

static void assert_no_signal_comes_for(long ns)
{
	assert_int_equal(nanosleep(&(struct timespec){ 0, ns }, NULL), 0);
}

static void between_sleeps_and_after_them_no_call_is_broken_off(void **state)
{
	struct hub_seizer seizer = { 0 };
	pid_t child = sleeping_child();
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	assert_no_signal_comes_for(50000000);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	hub_sleeps_end(&seizer);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, _NSIG / 8);
	assert_no_signal_comes_for(50000000);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	hub_seizing_begins(&seizer);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	hub_seizing_ends(&seizer);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, _NSIG / 8);
	assert_no_signal_comes_for(50000000);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hub_seizer_deinit(&seizer);
}

/* In a bracket that got no timer, where one could be made later. */
static void sleep_without_a_timer(pid_t child)
{
	const struct rlimit none = { 0, 0 };
	struct hub_seizer seizer = { 0 };
	sigset_t before, after;

	alarm(20);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	if (setrlimit(RLIMIT_SIGPENDING, &none) || seteuid(65534))
		_exit(2);
	hub_seizing_begins(&seizer);
	if (seizer.has_timer || seteuid(0))
		_exit(3);
	if (hub_sleep_for_stop(&seizer, child, 1000000) != -ENOTSUP || seizer.has_timer)
		_exit(4);
	hub_seizing_ends(&seizer);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	_exit(memcmp(&before, &after, _NSIG / 8) ? 5 : 0);
}

static void nothing_sleeps_where_no_timer_runs(void **state)
{
	int status;
	pid_t pid;

	if (geteuid())
		skip(); /* root alone gets a right back that it has dropped */
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		sleep_without_a_timer(sleeping_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- what else the thread does --------------------------------------------------------------- */

static void only_its_own_signal_is_as_before_after_sleeps(void **state)
{
	struct hub_seizer seizer = { 0 };
	pid_t child = sleeping_child();
	sigset_t mask, before;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(hub_sleep_for_stop(&seizer, child, 1000000), -EINTR);
	pthread_sigmask(SIG_BLOCK, &mask, NULL); /* the thread changes its mask meanwhile */
	hub_sleeps_end(&seizer);
	pthread_sigmask(SIG_SETMASK, &before, &mask);
	assert_true(sigismember(&mask, SIGUSR2));
	sigdelset(&mask, SIGUSR2);
	assert_memory_equal(&before, &mask, _NSIG / 8);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	hub_seizer_deinit(&seizer);
}

/* The line of /proc/PID/status. */
static void blocked_signals(pid_t pid, char line[64])
{
	char path[64], text[STATUS_SIZE];
	const char *found;
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(size > 0);
	text[size] = '\0';
	found = strstr(text, "\nSigBlk:");
	assert_non_null(found);
	snprintf(line, 64, "%.25s", found + 1);
}

static void a_command_that_is_launched_after_sleeps_has_its_launchers_mask(void **state)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL }, before[64], after[64];
	pid_t child = sleeping_child();
	struct hub_launched launched;
	struct kymo_hub *hub;

	blocked_signals(getpid(), before);
	assert_int_equal(hub_create_here(&hub), 0);
	assert_int_equal(hub_sleep_for_stop(&hub->seizer, child, 1000000), -EINTR);
	blocked_signals(getpid(), after);
	assert_string_not_equal(before, after);
	assert_int_equal(hub_launch_here(hub, argv, &launched), 0);
	blocked_signals(launched.pid, after);
	assert_string_equal(before, after);
	kill(launched.pid, SIGKILL);
	kymo_hub_destroy(hub);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_for_a_stop_that_does_not_come_is_over_soon),
		cmocka_unit_test(signals_that_take_long_do_not_keep_a_sleep_from_its_end),
		cmocka_unit_test(the_timer_of_a_sleep_serves_the_next_ones),
		cmocka_unit_test(between_sleeps_and_after_them_no_call_is_broken_off),
		cmocka_unit_test(nothing_sleeps_where_no_timer_runs),
		cmocka_unit_test(only_its_own_signal_is_as_before_after_sleeps),
		cmocka_unit_test(a_command_that_is_launched_after_sleeps_has_its_launchers_mask),
	};

	kymo_take_seize_signal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
