/* Which thread is in which system call, and which has an id now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "ctf/ctf.h"
#include "trace/kernel_threads.h"

enum { FIRST = 4000100, SECOND = 4000101 }; /* unused ids: no /proc is looked at */

static struct kymo_kernel_threads *threads;
static struct kymo_ctf_trace trace;

static int set_up(void **state)
{
	memset(&trace, 0, sizeof(trace));
	return kymo_kernel_threads_create(&threads) ? -1 : 0;
}

static int tear_down(void **state)
{
	kymo_kernel_threads_destroy(threads);
	kymo_ctf_trace_deinit(&trace);
	return 0;
}

static void see(int32_t tid, const char *name, uint64_t tsc)
{
	assert_null(kymo_kernel_threads_see(threads, &trace, tid, FIRST, name, tsc));
}

static void enter(int32_t tid, uint64_t number)
{
	assert_null(kymo_kernel_threads_enter(threads, tid, FIRST, number));
}

static bool leave(int32_t tid, uint64_t number)
{
	return kymo_kernel_threads_leave(threads, &tid, FIRST, number, false);
}

static void only_the_call_that_was_begun_comes_back(void **state)
{
	assert_false(leave(FIRST, SYS_read));
	enter(FIRST, SYS_read);
	assert_false(leave(FIRST, SYS_write));
	assert_false(leave(SECOND, SYS_read));
	assert_true(leave(FIRST, SYS_read));
	assert_false(leave(FIRST, SYS_read));
	enter(FIRST, SYS_rt_sigreturn);
	assert_true(leave(FIRST, UINT64_MAX));
	assert_false(leave(FIRST, UINT64_MAX));
	enter(FIRST, SYS_read);
	kymo_kernel_threads_end(threads, FIRST, 1);
	assert_false(leave(FIRST, SYS_read));
}

static void a_thread_that_executes_has_its_process_id_afterwards(void **state)
{
	int32_t tid = FIRST;

	see(FIRST, "one", 1);
	see(SECOND, "two", 2);
	enter(FIRST, SYS_pause);
	enter(SECOND, SYS_execve);
	assert_true(kymo_kernel_threads_leave(threads, &tid, FIRST, SYS_execve, true));
	assert_int_equal(tid, SECOND);
	assert_false(leave(FIRST, SYS_pause));
	assert_false(leave(SECOND, SYS_execve));
}

static void a_thread_with_an_earlier_id_is_another_thread(void **state)
{
	see(SECOND, "same", 100);
	see(SECOND, "same", 200);
	assert_int_equal(trace.n_threads, 1);
	kymo_kernel_threads_end(threads, SECOND, 250);
	see(SECOND, "same", 250); /* of a probe that it ran through before */
	assert_int_equal(trace.n_threads, 1);
	see(SECOND, "same", 300);
	assert_int_equal(trace.n_threads, 2);
	assert_int_equal(trace.threads[1].begin, 300);
}

static void what_the_recorder_says_of_a_process_is_not_replaced_by_a_name(void **state)
{
	assert_null(kymo_ctf_trace_add_process(&trace, FIRST, 0, 0, "ls -l /"));
	see(FIRST, "ls", 100);
	assert_int_equal(trace.n_processes, 1);
	assert_string_equal(trace.processes[0].command, "ls -l /");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_call_that_was_begun_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_thread_that_executes_has_its_process_id_afterwards, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_thread_with_an_earlier_id_is_another_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_the_recorder_says_of_a_process_is_not_replaced_by_a_name, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
