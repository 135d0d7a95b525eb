#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"

#define BIG ((size_t)1 << 20) /* more than a pipe holds */

static int memory_file(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(kymo_write_all(fd, text, strlen(text)), 0);
	return fd;
}

/* Reads the pipe to its end in small steps; the sum of its bytes. */
static void *drain(void *arg)
{
	uintptr_t sum = 0;
	uint8_t part[4097];
	ssize_t n;

	while ((n = read(*(int *)arg, part, sizeof(part))) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum += part[i];
	return (void *)sum;
}

static void writes_go_on_until_all_parts_are_out(void **state)
{
	uint8_t *data = malloc(BIG);
	struct iovec parts[] = { { data, 10 }, { data, 0 }, { data, BIG }, { data, 1 } };
	pthread_t reader;
	void *sum;
	int fds[2];

	assert_non_null(data);
	memset(data, 3, BIG);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&reader, NULL, drain, &fds[0]), 0);
	assert_int_equal(kymo_writev_all(fds[1], parts, 4), 0);
	close(fds[1]);
	pthread_join(reader, &sum);
	assert_int_equal((uintptr_t)sum, 3 * (BIG + 11));
	close(fds[0]);
	free(data);
}

static void a_full_device_is_an_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	assert_int_equal(kymo_write_all(fd, "x", 1), -ENOSPC);
	close(fd);
}

static void positioned_transfers_are_whole_or_fail(void **state)
{
	int fd = memory_file("0123456789");
	char text[4] = "";

	assert_int_equal(kymo_pread_all(fd, text, 3, 7), 0);
	assert_string_equal(text, "789");
	assert_int_equal(kymo_pread_all(fd, text, 3, 8), -EIO);
	assert_int_equal(kymo_pwrite_all(fd, "ab", 2, 4), 0);
	assert_int_equal(kymo_pread_all(fd, text, 3, 3), 0);
	assert_string_equal(text, "3ab");
	close(fd);
	assert_int_equal(kymo_pread_all(fd, text, 1, 0), -EBADF);
}

static void a_file_is_read_to_its_end_and_terminated(void **state)
{
	char directory[256], *text = NULL;
	const char *tmp = getenv("TMPDIR");
	size_t size = 0;
	int dirfd, fd;

	snprintf(directory, sizeof(directory), "%s/kymo-test-io.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(directory));
	dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dirfd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 5000), 0);
	assert_int_equal(kymo_pwrite_all(fd, "end", 3, 5000), 0);
	close(fd);
	assert_int_equal(kymo_read_file(dirfd, "file", 5003, &text, &size), 0);
	assert_int_equal(size, 5003);
	assert_string_equal(text + 5000, "end");
	free(text);
	text = NULL;
	assert_int_equal(kymo_read_file(dirfd, "file", 5002, &text, &size), -EFBIG);
	assert_int_equal(kymo_read_file(dirfd, "no file", 5002, &text, NULL), -ENOENT);
	assert_int_equal(kymo_read_file(dirfd, ".", 5002, &text, NULL), -EISDIR);
	assert_null(text);
	unlinkat(dirfd, "file", 0);
	close(dirfd);
	rmdir(directory);
}

static void files_of_procfs_have_no_size_and_are_read(void **state)
{
	size_t size = 0;
	char *text;

	assert_int_equal(kymo_read_file(AT_FDCWD, "/proc/self/maps", 1 << 20, &text, &size), 0);
	assert_true(size > 0 && strlen(text) == size);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_go_on_until_all_parts_are_out),
		cmocka_unit_test(a_full_device_is_an_error),
		cmocka_unit_test(positioned_transfers_are_whole_or_fail),
		cmocka_unit_test(a_file_is_read_to_its_end_and_terminated),
		cmocka_unit_test(files_of_procfs_have_no_size_and_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
