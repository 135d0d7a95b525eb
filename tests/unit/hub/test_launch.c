/* Commands that a hub launches, and what happens to them and their status when it goes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>

#include "engines.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "hub/launch.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"

static void a_command_is_seen_from_its_exec_to_its_end(void **state)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 5", NULL };
	struct kymo_hub *hub = new_hub();
	struct kymo_engine *engine;
	struct book book = { 0 };
	int status;
	pid_t pid;

	assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
	engine = engine_of(hub, pid, &book, KYMO_EVENTS_ALL);
	assert_int_equal(book.told[ENTRY], 0);
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	assert_int_equal(kymo_hub_wait(hub, pid, &status), 0);
	assert_int_equal(status, 5 << 8);
	assert_int_equal(kymo_hub_wait(hub, pid, &status), -ECHILD);
	assert_int_equal(kymo_hub_start(hub, pid), -ESRCH);
	assert_int_equal(book.told[EXEC], 1);
	assert_int_equal(book.told[EXIT], 1);
	assert_int_equal(book.told[DEATH], 1);
	assert_int_equal(book.told[REAP], 1);
	assert_int_equal(book.told[ENTRY], book.told[EXIT_OF_CALL] + 1); /* but of exit_group */
	assert_true(book.told[ENTRY] > 10);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	assert_int_equal(book.told[RELEASE], 1);
}

static void a_command_that_can_not_be_launched_is_refused(void **state)
{
	char *missing[] = { (char *)"no-such-program-anywhere", NULL }, *directory[] = { (char *)"/tmp", NULL },
	     *none[] = { NULL };
	struct kymo_hub *hub = new_hub();
	pid_t pid;

	assert_int_equal(kymo_hub_launch(hub, 0, missing, &pid), -ENOENT);
	assert_int_equal(kymo_hub_launch(hub, 0, directory, &pid), -EACCES);
	assert_int_equal(kymo_hub_launch(hub, 0, none, &pid), -EINVAL);
	assert_int_equal(kymo_hub_launch(hub, 1 << 5, missing, &pid), -EINVAL);
	kymo_hub_destroy(hub);
}

static void a_command_that_waits_for_its_turn_makes_no_more_calls_before(void **state)
{
	char *argv[] = { (char *)"true", NULL };

	for (int i = 0; i < 50; i++) {
		int go, status;
		pid_t pid;

		assert_int_equal(kymo_command_fork(argv, NULL, &pid, &go), 0);
		assert_int_equal(state_of(pid), 'S');
		close(go);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 127 << 8);
	}
}

static void a_command_that_was_not_started_ends_with_the_hub(void **state)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct kymo_hub *hub = new_hub();
	pid_t pid;

	assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
	kymo_hub_destroy(hub);
	eventually(kill(pid, 0) == -1 || state_of(pid) == 'Z');
	waitpid(pid, NULL, __WALL | WNOHANG);
}

static void a_started_command_runs_on_without_the_hub(void **state)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"read word; exit 6", NULL };
	struct kymo_hub *hub = new_hub();
	struct book book = { 0 };
	int words[2], input, status;
	pid_t pid;

	assert_int_equal(pipe2(words, O_CLOEXEC), 0);
	input = fcntl(0, F_DUPFD_CLOEXEC, 3);
	assert_true(input >= 0);
	assert_int_equal(dup2(words[0], 0), 0); /* stays open at an exec */
	assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
	assert_int_equal(dup2(input, 0), 0);
	close(input);
	close(words[0]);
	kymo_engine_put(engine_of(hub, pid, &book, KYMO_EVENTS_ALL));
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	eventually(book.told[ENTRY] > 5);
	kymo_hub_destroy(hub);
	assert_int_equal(book.told[RELEASE], 1);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(write(words[1], "go\n", 3), 3);
	close(words[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 6 << 8);
}

/* Whenever the command ends: by the hub's closing, or after it. */
static void the_end_of_a_command_is_told_though_the_hub_is_closed(void **state)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 6", NULL };
	int n_told = 0;

	for (unsigned int i = 0; i < 60; i++) {
		struct kymo_hub *hub = new_hub();
		struct book book = { 0 };
		int status = -1;
		pid_t pid;

		assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
		kymo_engine_put(engine_of(hub, pid, &book, KYMO_EVENTS_ALL));
		assert_int_equal(kymo_hub_start(hub, pid), 0);
		eventually(book.told[ENTRY] > i || book.told[EXIT]);
		kymo_engine_detach_all(hub, &ops, &book);
		if (kymo_hub_close(hub, pid, &status))
			n_told++;
		else
			assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 6 << 8);
		assert_int_equal(waitpid(pid, &status, WNOHANG), -1);
	}
	assert_true(n_told > 0);
}

/* A child that has this number, which is free. False: not permitted. */
static bool make_child_with_number(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1,
	};
	long got = syscall(SYS_clone3, &args, sizeof(args));

	if (!got)
		for (;;)
			pause();
	if (got == -1 && errno == EPERM)
		return false;
	assert_int_equal(got, pid);
	return true;
}

static void the_number_of_a_command_that_has_ended_is_another_ones(void **state)
{
	char *argv[] = { (char *)"true", NULL };
	struct kymo_hub *hub = new_hub();
	bool is_permitted;
	int status;
	pid_t pid;

	assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	eventually(kill(pid, 0) == -1);
	is_permitted = make_child_with_number(pid);
	assert_int_equal(kymo_hub_kill(hub, pid), -ESRCH);
	kymo_hub_destroy(hub);
	if (!is_permitted) {
		print_message("a process's number cannot be chosen here\n");
		skip();
	}
	nap();
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* What hub_release_all() asks for, too. */
static void a_process_whose_end_was_waited_for_is_not_killed(void **state)
{
	static const int ends[] = { SIGKILL, 5 << 8 };
	struct hub_status early = { .status = 0x7f };
	struct hub_process process = { .pid = fork() };
	struct kymo_hub hub = { .statuses.early = { .items = &early, .n = 1 } };
	int status;

	if (!process.pid)
		for (;;)
			pause();
	early.tid = process.pid;
	for (size_t i = 0; i < kymo_countof(ends); i++) {
		early.status = ends[i];
		assert_int_equal(hub_kill(&hub, &process), -ESRCH);
	}
	early.status = SIGSTOP << 8 | 0x7f;
	process.has_ended = true;
	assert_int_equal(hub_kill(&hub, &process), -ESRCH);
	nap();
	assert_int_equal(waitpid(process.pid, &status, WNOHANG), 0);
	process.has_ended = false;
	assert_int_equal(hub_kill(&hub, &process), 0);
	assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
	assert_int_equal(status, SIGKILL);
}

static void a_command_is_killed_once(void **state)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct kymo_hub *hub = new_hub();
	int status;
	pid_t pid;

	assert_int_equal(kymo_hub_launch(hub, 0, argv, &pid), 0);
	assert_int_equal(kymo_hub_kill(hub, pid), 0);
	assert_int_equal(kymo_hub_start(hub, pid), 0);
	assert_int_equal(kymo_hub_wait(hub, pid, &status), 0);
	assert_int_equal(status, SIGKILL);
	assert_int_equal(kymo_hub_kill(hub, pid), -ESRCH);
	assert_int_equal(kymo_hub_kill(hub, getpid()), -ESRCH);
	kymo_hub_destroy(hub);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_seen_from_its_exec_to_its_end),
		cmocka_unit_test(a_command_that_can_not_be_launched_is_refused),
		cmocka_unit_test(a_command_that_waits_for_its_turn_makes_no_more_calls_before),
		cmocka_unit_test(a_command_that_was_not_started_ends_with_the_hub),
		cmocka_unit_test(a_started_command_runs_on_without_the_hub),
		cmocka_unit_test(the_end_of_a_command_is_told_though_the_hub_is_closed),
		cmocka_unit_test(the_number_of_a_command_that_has_ended_is_another_ones),
		cmocka_unit_test(a_process_whose_end_was_waited_for_is_not_killed),
		cmocka_unit_test(a_command_is_killed_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
