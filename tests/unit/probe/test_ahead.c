/* Memory that is allocated on a thread of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/memory/ahead.h"

#define PAGE 4096

static int memory(void)
{
	const int fd = memfd_create("ahead", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1024 * PAGE), 0);
	return fd;
}

static long pages_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks * 512 / PAGE;
}

static void all_ranges_have_memory_at_the_end(void **state)
{
	const struct kymo_range ranges[] = { { 0, 3 * PAGE }, { 100 * PAGE, 20 * PAGE }, { 1023 * PAGE, PAGE } };
	const int fd = memory();
	struct kymo_ahead *ahead = kymo_ahead_begin(fd, ranges, 3);

	assert_non_null(ahead);
	assert_int_equal(kymo_ahead_end(ahead), 0);
	assert_int_equal(pages_of(fd), 24);
	close(fd);
}

static void what_fails_is_told_and_what_is_behind_it_left_out(void **state)
{
	const struct kymo_range ranges[] = { { 0, PAGE }, { 1024 * PAGE, PAGE }, { 10 * PAGE, PAGE } };
	const int fd = memory();
	struct kymo_ahead *ahead;

	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	ahead = kymo_ahead_begin(fd, ranges, 3);
	assert_non_null(ahead);
	assert_int_equal(kymo_ahead_end(ahead), EPERM);
	assert_int_equal(pages_of(fd), 1);
	close(fd);
}

static void its_callers_signals_are_as_before(void **state)
{
	const struct kymo_range range = { 0, PAGE };
	const int fd = memory();
	sigset_t before, after;
	struct kymo_ahead *ahead;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ahead = kymo_ahead_begin(fd, &range, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_non_null(ahead);
	assert_int_equal(kymo_ahead_end(ahead), 0);
	assert_memory_equal(&before, &after, _NSIG / 8);
	close(fd);
}

/* Root may have as many as it likes; so as another user. */
static void where_there_is_no_thread_nothing_is_begun(void **state)
{
	const struct kymo_range range = { 0, PAGE };
	const struct rlimit none = { 0, 0 };
	const int fd = memory();

	if (geteuid() == 0 && setresuid(65534, 65534, 0))
		skip();
	assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
	assert_null(kymo_ahead_begin(fd, &range, 1));
	assert_int_equal(pages_of(fd), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranges_have_memory_at_the_end),
		cmocka_unit_test(what_fails_is_told_and_what_is_behind_it_left_out),
		cmocka_unit_test(its_callers_signals_are_as_before),
		cmocka_unit_test(where_there_is_no_thread_nothing_is_begun), /* the last: it has no way back */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
