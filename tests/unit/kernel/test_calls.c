/*
 * The BPF programs of system calls: the kernel's verifier takes them with all options, and what they copy is what the
 * memory of the call has.
 */
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/uprobe.h"
#include "kernel/calls.h"

enum { LARGE = 9000, BAD = -1 }; /* LARGE: more than two pages */

struct wanted {
	unsigned int number;
	struct kymo_copy copy, later; /* at the entry, and at the exit if `later.max` is not 0 */
};

static bool wants(void *context, unsigned int number)
{
	const struct wanted *wanted = context;

	return number == wanted->number;
}

static bool wants_none(void *context, unsigned int number)
{
	return false;
}

static size_t copies(void *context, unsigned int number, bool is_leaving, struct kymo_copy *ret)
{
	const struct wanted *wanted = context;

	*ret = is_leaving ? wanted->later : wanted->copy;
	return !is_leaving || wanted->later.max;
}

static struct kymo_kernel_calls *open_calls(const struct wanted *wanted, struct kymo_kernel_calls_options options)
{
	struct kymo_kernel_calls *calls = NULL;
	struct kymo_error *error;

	options.buffer_size = 1 << 20;
	options.layout = &kymo_call_layout;
	options.context = (void *)wanted;
	options.wants = wants;
	options.wants_i386 = options.replaces_memory = wants_none;
	options.copies = copies;
	error = kymo_kernel_calls_create(&options, &calls);
	if (error && (error->code == KYMO_ERROR_PERMISSION || error->code == KYMO_ERROR_NOT_FOUND)) {
		print_message("%s\n", error->message);
		kymo_error_destroy(error);
		skip();
	}
	if (error)
		fail_msg("%s", error->message);
	return calls;
}

static void the_kernel_takes_them_with_all_options(void **state)
{
	static const struct wanted wanted = { .number = SYS_getppid, .copy = { 0 } };

	for (int i = 0; i < 32; i++)
		kymo_kernel_calls_destroy(
			open_calls(&wanted, (struct kymo_kernel_calls_options){ .pid = i & 1 ? getpid() : 0,
										.thread = i & 1 && i & 2 ? getpid() : 0,
										.has_times = i & 4,
										.names = i & 8,
										.signals = i & 4,
										.overwrite = i & 16 }));
}

struct expected {
	uint64_t address;
	const void *bytes;
	size_t size; /* 0: nothing is there */
};

struct seen {
	enum kymo_kernel_call_event event;
	const struct expected *expected; /* at that event */
	size_t n;
	int n_entries;
	bool is_incomplete; /* the entry */
};

static struct kymo_error *see(const struct kymo_kernel_call *call, void *data)
{
	struct seen *seen = data;

	if (call->event == KYMO_KERNEL_CALL_ENTERED) {
		seen->n_entries++;
		seen->is_incomplete = call->is_incomplete;
	}
	if (call->event != seen->event)
		return NULL;
	for (size_t i = 0; i < seen->n; i++) {
		const struct expected *expected = &seen->expected[i];
		static char found[LARGE];

		assert_int_equal(kymo_copies_read(&call->copies, 1, expected->address, found, expected->size),
				 expected->size);
		assert_memory_equal(found, expected->bytes, expected->size);
	}
	return NULL;
}

/* The call is made once, with these arguments. */
static struct seen make_call_until(enum kymo_kernel_call_event event, const struct wanted *wanted,
				   const uint64_t args[4], const struct expected *expected, size_t n)
{
	struct kymo_kernel_calls *calls =
		open_calls(wanted, (struct kymo_kernel_calls_options){ .pid = getpid(), .thread = gettid() });
	struct seen seen = { .event = event, .expected = expected, .n = n };
	bool is_empty = false;

	syscall(wanted->number, args[0], args[1], args[2], args[3]);
	kymo_kernel_calls_detach(calls);
	while (!is_empty)
		assert_null(kymo_kernel_calls_drain(calls, see, &seen, &is_empty));
	assert_int_equal(kymo_kernel_calls_lost(calls), 0);
	kymo_kernel_calls_destroy(calls);
	assert_int_equal(seen.n_entries, 1);
	return seen;
}

static struct seen make_call(const struct wanted *wanted, const uint64_t args[4], const struct expected *expected,
			     size_t n)
{
	return make_call_until(KYMO_KERNEL_CALL_ENTERED, wanted, args, expected, n);
}

static uint64_t at(const void *pointer)
{
	return (uintptr_t)pointer;
}

static void bytes_are_copied_few_or_many(void **state)
{
	static char bytes[LARGE];

	memset(bytes, 'x', sizeof(bytes));
	bytes[0] = 'a';
	bytes[LARGE - 1] = 'z';
	for (size_t size = 1; size <= LARGE; size = size * 9 + 1) {
		const struct wanted wanted = {
			.number = SYS_write, .copy = { KYMO_COPY_BYTES, .arg = 1, .times = 3, .size = 1, .max = LARGE }
		};
		const struct wanted small = {
			.number = SYS_write, .copy = { KYMO_COPY_BYTES, .arg = 1, .times = 3, .size = 1, .max = 100 }
		};
		const uint64_t args[] = { (uint64_t)BAD, at(bytes), size, 0 };

		assert_false(make_call(&wanted, args, &(struct expected){ at(bytes), bytes, size }, 1).is_incomplete);
		assert_false(make_call(&small, args, &(struct expected){ at(bytes), bytes, size < 100 ? size : 100 }, 1)
				     .is_incomplete);
	}
}

static void strings_are_copied(void **state)
{
	static const char text[] = "/a/file/that/is/not";
	const struct wanted small = { .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 100 } };
	const struct wanted large = { .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 4098 } };
	const uint64_t args[] = { at(text), 0, 0, 0 };
	const struct expected expected = { at(text), text, sizeof(text) };

	assert_false(make_call(&small, args, &expected, 1).is_incomplete);
	assert_false(make_call(&large, args, &expected, 1).is_incomplete);
}

static void what_is_not_there_is_told(void **state)
{
	const struct wanted small = { .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 100 } };
	const struct wanted large = { .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 4098 } };
	const uint64_t args[] = { 8192, 0, 0, 0 };

	assert_true(make_call(&small, args, NULL, 0).is_incomplete);
	assert_true(make_call(&large, args, NULL, 0).is_incomplete);
}

/* A page that no process has mapped yet cannot be copied at the entry. The call itself reads it. */
static void what_is_not_there_at_the_entry_is_copied_at_the_exit(void **state)
{
	static const uint16_t sizes[][2] = { { 100, 0 }, { 1000, 0 }, { 100, 100 }, { 300, 300 }, { 1000, 1000 } };
	static char bytes[1000], other[1000];
	const int file = memfd_create("pages", 0);
	int ends[2];

	memset(bytes, 'b', sizeof(bytes));
	memset(other, 'o', sizeof(other));
	assert_int_equal(write(file, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const uint16_t first = sizes[i][0], second = sizes[i][1];
		const struct wanted wanted = {
			.number = SYS_write,
			.copy = { KYMO_COPY_BYTES, .arg = 1, .times = 3, .size = 1, .max = first },
			.later = { KYMO_COPY_BYTES, .arg = 3, .times = 3, .size = 1, .max = second },
		};
		void *page = mmap(NULL, sizeof(bytes), PROT_READ, MAP_SHARED, file, 0);
		const uint64_t args[] = { (uint64_t)ends[1], at(page), first, at(other) };
		const struct expected expected[] = { { at(page), bytes, first }, { at(other), other, second } };

		assert_true(
			make_call_until(KYMO_KERNEL_CALL_LEFT, &wanted, args, expected, second ? 2 : 1).is_incomplete);
		munmap(page, sizeof(bytes));
	}
	close(ends[0]);
	close(ends[1]);
	close(file);
}

static void vectors_messages_and_lists_are_copied(void **state)
{
	char one[] = "one", two[] = "the second one", name[] = "name";
	struct iovec vector[] = { { one, sizeof(one) }, { two, sizeof(two) } };
	struct msghdr message = { .msg_name = name, .msg_namelen = sizeof(name), .msg_iov = vector, .msg_iovlen = 2 };
	char *list[] = { one, two, NULL };
	const struct wanted wanted_vector = { .number = SYS_writev,
					      .copy = { KYMO_COPY_VECTOR, .arg = 1, .times = 3, .max = 32 } };
	const struct wanted wanted_message = { .number = SYS_sendmsg,
					       .copy = { KYMO_COPY_MESSAGE, .arg = 1, .max = 32 } };
	const struct wanted wanted_list = { .number = SYS_execve, .copy = { KYMO_COPY_STRINGS, .arg = 1, .max = 32 } };
	const struct expected expected[] = {
		{ at(one), one, sizeof(one) },    { at(two), two, sizeof(two) },
		{ at(vector), vector, 16 },       { at(&message), &message, sizeof(message) },
		{ at(name), name, sizeof(name) },
	};

	assert_false(
		make_call(&wanted_vector, (uint64_t[]){ (uint64_t)BAD, at(vector), 2, 0 }, expected, 3).is_incomplete);
	assert_false(make_call(&wanted_message, (uint64_t[]){ (uint64_t)BAD, at(&message), 0, 0 }, expected, 5)
			     .is_incomplete);
	assert_false(make_call(&wanted_list, (uint64_t[]){ at("/none"), at(list), at(&list[2]), 0 }, expected, 2)
			     .is_incomplete);
}

/* The second thread ends after the first one. */
static void *wait_for_the_first(void *pid)
{
	char name[64], text[256] = "";

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", *(pid_t *)pid);
	while (!strstr(text, ") Z")) {
		const int file = open(name, O_RDONLY);

		if (read(file, text, sizeof(text) - 1) < 0)
			abort();
		close(file);
	}
	return NULL;
}

static void end_with_threads(int n_threads)
{
	static pid_t pid;
	pthread_t thread;

	pid = getpid();
	if (n_threads > 1 && !pthread_create(&thread, NULL, wait_for_the_first, &pid))
		syscall(SYS_exit, 0);
	_exit(0);
}

static void check_that_ends_may_be_late(int n_threads, bool may_be_late)
{
	static const struct wanted wanted = { .number = SYS_getppid, .copy = { 0 } };
	struct kymo_kernel_calls *calls;
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) < 0)
			abort();
		end_with_threads(n_threads);
	}
	close(ends[0]);
	calls = open_calls(&wanted, (struct kymo_kernel_calls_options){ .pid = pid, .follow = true });
	assert_true(kymo_kernel_calls_has_processes(calls));
	close(ends[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(kymo_kernel_calls_has_processes(calls));
	assert_int_equal(kymo_kernel_calls_may_be_late(calls), may_be_late);
	kymo_kernel_calls_destroy(calls);
}

/* Of a process with one thread no end is missing once it is counted. */
static void ends_may_be_late_where_threads_are_left(void **state)
{
	check_that_ends_may_be_late(1, false);
	check_that_ends_may_be_late(2, true);
}

struct programs {
	unsigned long n,
		verified; /* `verified`: instructions that the verifier followed; 0: the kernel does not tell */
};

/* Those that this process has descriptors of. */
static struct programs find_programs(void)
{
	struct programs programs = { 0 };
	char line[256], name[64];

	for (int fd = 0; fd < 256; fd++) {
		FILE *file;

		snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
		file = fopen(name, "re");
		while (file && fgets(line, sizeof(line), file)) {
			unsigned long verified;

			if (sscanf(line, "verified_insns: %lu", &verified) == 1)
				programs.verified += verified;
			programs.n += !strncmp(line, "prog_jited:", 11);
		}
		if (file)
			fclose(file);
	}
	return programs;
}

static struct programs load_for(const struct wanted *wanted)
{
	struct kymo_kernel_calls *calls = open_calls(wanted, (struct kymo_kernel_calls_options){ .pid = getpid() });
	const struct programs programs = find_programs();

	kymo_kernel_calls_destroy(calls);
	return programs;
}

/* The time of the verifier is that of the start. */
static void programs_that_no_call_needs_are_not_loaded(void **state)
{
	const struct programs none = find_programs();
	const struct programs small =
		load_for(&(struct wanted){ .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 100 } });
	const struct programs large =
		load_for(&(struct wanted){ .number = SYS_access, .copy = { KYMO_COPY_STRING, .max = 4098 } });

	assert_int_equal(none.n, 0);
	assert_int_equal(small.n, 3); /* entry, exit, end of a thread */
	assert_int_equal(large.n, 5);
	assert_true(small.verified < 8000);
	assert_true(large.verified < 25000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_takes_them_with_all_options),
		cmocka_unit_test(bytes_are_copied_few_or_many),
		cmocka_unit_test(strings_are_copied),
		cmocka_unit_test(what_is_not_there_is_told),
		cmocka_unit_test(what_is_not_there_at_the_entry_is_copied_at_the_exit),
		cmocka_unit_test(vectors_messages_and_lists_are_copied),
		cmocka_unit_test(ends_may_be_late_where_threads_are_left),
		cmocka_unit_test(programs_that_no_call_needs_are_not_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
