/* Memory that is allocated on a thread of its own. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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

static unsigned long n_threads(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/task", &st), 0);
	return st.st_nlink - 2;
}

/* Until no thread frees anything any more. */
static void wait_until_alone(void)
{
	const int limit_s = 20;

	for (int i = 0; i < limit_s * 1000 && n_threads() != 1; i++)
		usleep(1000);
	assert_int_equal(n_threads(), 1);
}

static void what_is_freed_aside_is_gone_soon(void **state)
{
	const int fd = memory(), limit_s = 20;
	uint8_t *view = mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(view != MAP_FAILED);
	memset(view, 1, 1024 * PAGE);
	kymo_free_aside(view, 1024 * PAGE, fd);
	for (int i = 0; i < limit_s * 1000 && fcntl(fd, F_GETFD) >= 0; i++)
		usleep(1000);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(msync(view, PAGE, MS_ASYNC), -1); /* it is closed after it was unmapped */
	assert_int_equal(errno, ENOMEM);
}

/* A connection that has more to send than its peer takes: close() waits until that has gone. */
static int slow_to_close(int *peer_ret)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct linger linger = { .l_onoff = 1, .l_linger = 60 };
	socklen_t size = sizeof(address);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[PAGE];

	assert_true(listener >= 0 && fd >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
	*peer_ret = accept(listener, NULL, NULL);
	assert_true(*peer_ret >= 0);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void while_one_is_freed_aside_the_next_is_freed_at_once(void **state)
{
	const int limit_s = 20, fds[] = { memory(), memory() };
	int peer, first = slow_to_close(&peer);

	wait_until_alone();
	kymo_free_aside(NULL, 0, first);
	for (int i = 0; i < 2; i++) {
		kymo_free_aside(NULL, 0, fds[i]);
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
	}
	for (int i = 0; i < limit_s * 1000 && fcntl(first, F_GETFD) >= 0; i++)
		usleep(1000);
	assert_int_equal(fcntl(first, F_GETFD), -1);
	close(peer);
}

/* Root may have as many as it likes; so as another user. */
static void where_there_is_no_thread_nothing_is_begun(void **state)
{
	const struct kymo_range range = { 0, PAGE };
	struct rlimit before, none;
	const bool is_root = geteuid() == 0;
	const int fd = memory();

	if (is_root && setresuid(65534, 65534, 0))
		skip();
	assert_int_equal(getrlimit(RLIMIT_NPROC, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
	assert_null(kymo_ahead_begin(fd, &range, 1));
	assert_int_equal(pages_of(fd), 0);
	kymo_free_aside(NULL, 0, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* at once */
	/* A sanitizer looks for leaks at the end, as a tracer, from a thread of its own. */
	assert_int_equal(setrlimit(RLIMIT_NPROC, &before), 0);
	if (is_root)
		assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranges_have_memory_at_the_end),
		cmocka_unit_test(what_fails_is_told_and_what_is_behind_it_left_out),
		cmocka_unit_test(its_callers_signals_are_as_before),
		cmocka_unit_test(what_is_freed_aside_is_gone_soon),
		cmocka_unit_test(while_one_is_freed_aside_the_next_is_freed_at_once),
		cmocka_unit_test(where_there_is_no_thread_nothing_is_begun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
