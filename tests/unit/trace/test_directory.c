/* Recorders that begin in one directory, and processes that look at it: one has it, and no other believes that it does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "trace/directory.h"
#include "trace/held.h"

#define RECORDERS 4
#define ROUNDS 100

static char scratch[] = "kymo-directory.XXXXXX";

static int enter_scratch(void **state)
{
	const char *parent = getenv("TMPDIR");

	return chdir(parent ? parent : "/tmp") || !mkdtemp(scratch) || chdir(scratch);
}

static int remove_scratch(void **state)
{
	char command[sizeof(scratch) + 16];

	snprintf(command, sizeof(command), "rm -r ../%s", scratch);
	return system(command);
}

/* What a recorder of this round has: the inode of its directory, or 0. It keeps that until the pipe `end` is closed. */
static void be_recorder(int begin, int result, int end)
{
	char byte;
	uint64_t inode = 0;
	int fd = -1;
	struct stat st;
	struct kymo_error *error;

	if (read(begin, &byte, 1))
		_exit(1);
	error = kymo_directory_make("trace", &fd);
	if (!error && !fstat(fd, &st))
		inode = st.st_ino;
	kymo_error_destroy(error);
	if (write(result, &inode, sizeof(inode)) != sizeof(inode) || read(end, &byte, 1))
		_exit(1);
	_exit(0);
}

/* How many recorders have a directory, when all of them have tried. */
static unsigned int round_of_recorders(uint64_t *inode_ret)
{
	int begin[2], result[2], end[2], status;
	unsigned int n = 0;
	uint64_t inode;

	assert_false(pipe(begin) || pipe(result) || pipe(end));
	for (int i = 0; i < RECORDERS; i++)
		if (!fork()) {
			close(begin[1]);
			close(end[1]);
			be_recorder(begin[0], result[1], end[0]);
		}
	close(begin[0]);
	close(end[0]);
	close(begin[1]);
	for (int i = 0; i < RECORDERS; i++) {
		assert_int_equal(read(result[0], &inode, sizeof(inode)), sizeof(inode));
		if (inode)
			*inode_ret = inode;
		n += inode != 0;
	}
	close(end[1]);
	for (int i = 0; i < RECORDERS; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	close(result[0]);
	close(result[1]);
	return n;
}

static void one_of_many_has_the_directory(void **state)
{
	unsigned int n_rounds_with_one = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t inode = 0;
		struct stat st;
		unsigned int n = round_of_recorders(&inode);

		assert_in_range(n, 0, 1);
		if (!n)
			continue;
		n_rounds_with_one++;
		assert_false(stat("trace", &st));
		assert_int_equal(st.st_ino, inode);
	}
	assert_true(n_rounds_with_one > 0);
}

static int make(const char *path)
{
	int fd = -1;
	struct kymo_error *error = kymo_directory_make(path, &fd);

	if (error)
		print_error("%s\n", error->message);
	assert_null(error);
	return fd;
}

static void write_file(int fd, const char *name)
{
	int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(file >= 0);
	close(file);
}

static void processes_that_only_look_do_not_refuse_each_other(void **state)
{
	struct kymo_error *error;
	int fd = make("looked-at");

	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	error = kymo_directory_check("looked-at");
	assert_null(error);
	close(fd);
}

static void a_directory_that_is_recorded_into_is_refused(void **state)
{
	struct kymo_error *error;
	int fd = make("recorded"), other = -1;

	error = kymo_directory_check("recorded");
	assert_non_null(error);
	assert_non_null(strstr(error->message, "records into it"));
	kymo_error_destroy(error);
	error = kymo_directory_make("recorded", &other);
	assert_non_null(error);
	kymo_error_destroy(error);
	assert_int_equal(other, -1);
	close(fd);
}

static void *unlock_soon(void *data)
{
	const int *fd = data;

	usleep(10000);
	flock(*fd, LOCK_UN);
	return NULL;
}

/* Often: the one that looks may be kept from going on for long. */
static void a_recorder_waits_for_a_process_that_only_looks(void **state)
{
	struct kymo_error *error;
	int made = -1;

	for (int i = 0; i < 50 && made < 0; i++) {
		pthread_t thread;
		int fd;

		mkdir("waited-for", 0700);
		fd = open("waited-for", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(flock(fd, LOCK_SH), 0);
		assert_int_equal(pthread_create(&thread, NULL, unlock_soon, &fd), 0);
		error = kymo_directory_make("waited-for", &made);
		kymo_error_destroy(error);
		pthread_join(thread, NULL);
		close(fd);
	}
	assert_true(made >= 0);
	close(made);
}

static void a_failed_recording_is_discarded_by_its_descriptor(void **state)
{
	int fd = make("failed"), other;
	struct stat st;

	write_file(fd, "metadata");
	write_file(fd, "stream_0");
	kymo_directory_discard("failed", fd);
	assert_int_equal(stat("failed", &st), -1);
	close(fd);

	fd = make("failed");
	write_file(fd, "stream_0");
	assert_int_equal(rename("failed", "moved"), 0);
	other = make("failed");
	write_file(other, "stream_0");
	kymo_directory_discard("failed", fd);
	assert_int_equal(fstatat(fd, "stream_0", &st, 0), -1);
	assert_int_equal(stat("failed/stream_0", &st), 0);
	assert_int_equal(stat("moved", &st), 0);
	close(fd);
	close(other);

	fd = make("failed-empty");
	assert_int_equal(rename("failed-empty", "moved-empty"), 0);
	other = make("failed-empty");
	kymo_directory_discard("failed-empty", fd);
	assert_int_equal(stat("failed-empty", &st), 0);
	close(fd);
	close(other);
}

/* Of an earlier recording: those of another user's directory, small ones and what is no file are not opened. */
static void large_files_are_held_and_closed_aside(void **state)
{
	struct kymo_held *held;
	int old;

	assert_null(kymo_held_open("large"));
	assert_int_equal(mkdir("large.old", 0700), 0);
	old = open("large.old", O_RDONLY | O_DIRECTORY);
	write_file(old, "stream_0");
	assert_int_equal(mkfifoat(old, "stream_1", 0600), 0);
	assert_null(kymo_held_open("large"));
	write_file(old, "stream_2");
	assert_int_equal(truncate("large.old/stream_2", 64 << 20), 0); /* sparse */
	assert_int_equal(symlink("large.old", "linked.old"), 0);
	assert_null(kymo_held_open("linked"));
	held = kymo_held_open("large/");
	assert_non_null(held);
	kymo_held_close(held);
	kymo_held_close(NULL);
	assert_int_equal(faccessat(old, "stream_2", F_OK, 0), 0); /* it stays as it is */
	close(old);
}

static void make_earlier(const char *path)
{
	static const char metadata[] = "/* CTF 1.8 */";
	int fd, file;

	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	file = openat(fd, "metadata", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(file, metadata, sizeof(metadata)), sizeof(metadata));
	close(file);
	write_file(fd, "stream_0");
	write_file(fd, "kernel_0");
	close(fd);
}

/* A recorder may be killed at any of them. */
static void the_last_file_that_is_removed_tells_that_it_is_a_recording(void **state)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} read_;
	int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), fd = -1;
	char last[32] = "";
	ssize_t size;

	make_earlier("removed");
	make_earlier("removed.old");
	assert_true(inotify_add_watch(watch, "removed.old", IN_DELETE) >= 0);
	assert_null(kymo_directory_make("removed", &fd));
	size = read(watch, read_.bytes, sizeof(read_.bytes));
	for (ssize_t at = 0; at < size;) {
		const struct inotify_event *event = (const void *)(read_.bytes + at);

		if (event->mask & IN_DELETE)
			snprintf(last, sizeof(last), "%s", event->name);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	assert_string_equal(last, "metadata");
	close(watch);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_many_has_the_directory),
		cmocka_unit_test(processes_that_only_look_do_not_refuse_each_other),
		cmocka_unit_test(a_directory_that_is_recorded_into_is_refused),
		cmocka_unit_test(a_recorder_waits_for_a_process_that_only_looks),
		cmocka_unit_test(a_failed_recording_is_discarded_by_its_descriptor),
		cmocka_unit_test(large_files_are_held_and_closed_aside),
		cmocka_unit_test(the_last_file_that_is_removed_tells_that_it_is_a_recording),
	};

	return cmocka_run_group_tests(tests, enter_scratch, remove_scratch);
}
