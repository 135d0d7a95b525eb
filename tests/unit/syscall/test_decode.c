/* Registers and memory in, text out. The memory is a few pages at an address of our own choice; nothing else can be
 * read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "syscall/call.h"
#include "syscall/line.h"
#include "syscall/names.h"
#include "syscall/siginfo.h"
#include "syscall/touches.h"

enum {
	BASE = 0x10000,
	SIZE = 0x2000,
};

static char memory[SIZE];

/* As the kernel does it: up to the end of what is there. */
static size_t read_memory(void *context, uint64_t address, void *out, size_t size)
{
	if (address < BASE || address >= BASE + SIZE)
		return 0;
	if (size > BASE + SIZE - address)
		size = BASE + SIZE - address;
	memcpy(out, memory + (address - BASE), size);
	return size;
}

static size_t fd_path(void *context, int fd, char *out, size_t size)
{
	static const char *const paths[] = { "/dev/null", "pipe:[7]", "/tmp/a<b (deleted)" };

	if (fd == AT_FDCWD)
		return (size_t)snprintf(out, size, "/work");
	return fd >= 0 && fd < 3 ? (size_t)snprintf(out, size, "%s", paths[fd]) : 0;
}

static struct kymo_syscall_target target;

static int setup(void **state)
{
	target = (struct kymo_syscall_target){ .read = read_memory, .string_size = 32 };
	memset(memory, 0, sizeof(memory));
	return 0;
}

static uint64_t put(size_t offset, const void *bytes, size_t size)
{
	memcpy(memory + offset, bytes, size);
	return BASE + offset;
}

static uint64_t put_text(size_t offset, const char *text)
{
	return put(offset, text, strlen(text) + 1);
}

#define CALL(nr, ...) \
	(struct kymo_syscall_call) \
	{ \
		.number = (nr), .args = { __VA_ARGS__ } \
	}

/* `entry` is what is known when the call is made; `whole` has " = " and the result. */
static void check_call(struct kymo_syscall_call call, int64_t result, const char *entry, const char *whole)
{
	struct kymo_line line = { 0 };

	kymo_syscall_enter(&call, &target, &line);
	if (entry)
		assert_string_equal(line.data, entry);
	call.result = result;
	kymo_syscall_leave(&call, &target, &line);
	kymo_line_puts(&line, " = ");
	kymo_syscall_result(&call, &target, &line);
	assert_string_equal(line.data, whole);
	assert_false(line.is_cut);
	kymo_line_deinit(&line);
}

static void what_the_kernel_writes_is_shown_at_the_exit(void **state)
{
	const uint64_t buffer = put(0, "abc\n", 4);

	check_call(CALL(SYS_read, 3, buffer, 100), 4, "read(3, ", "read(3, \"abc\\n\", 100) = 4");
	check_call(CALL(SYS_read, 3, buffer, 100), -EBADF, "read(3, ",
		   "read(3, 0x10000, 100) = -1 EBADF (Bad file descriptor)");
	check_call(CALL(SYS_read, 3, buffer, 100), 0, NULL, "read(3, \"\", 100) = 0");
	check_call(CALL(SYS_write, 1, buffer, 4), 4, "write(1, \"abc\\n\", 4", "write(1, \"abc\\n\", 4) = 4");
	check_call(CALL(SYS_pipe2, put(64, (int[]){ 5, 6 }, 8), O_CLOEXEC), 0, "pipe2(",
		   "pipe2([5, 6], O_CLOEXEC) = 0");
}

static void memory_that_is_not_there_is_shown_as_its_address(void **state)
{
	const uint64_t last = BASE + SIZE - 3;

	check_call(CALL(SYS_write, 1, 0, 4), -EFAULT, NULL, "write(1, NULL, 4) = -1 EFAULT (Bad address)");
	check_call(CALL(SYS_write, 1, 0x55, 4), -EFAULT, NULL, "write(1, 0x55, 4) = -1 EFAULT (Bad address)");
	check_call(CALL(SYS_write, 1, UINT64_MAX, UINT64_MAX), -EFAULT, NULL,
		   "write(1, 0xffffffffffffffff, 18446744073709551615) = -1 EFAULT (Bad address)");
	/* A string may end right before a page that is not there; one without an end is no string. */
	memcpy(memory + SIZE - 3, "ab", 3);
	check_call(CALL(SYS_unlink, last), 0, NULL, "unlink(\"ab\") = 0");
	memcpy(memory + SIZE - 3, "abc", 3);
	check_call(CALL(SYS_unlink, last), -EFAULT, NULL, "unlink(0x11ffd) = -1 EFAULT (Bad address)");
	check_call(CALL(SYS_fstat, 3, BASE + SIZE - 8), 0, NULL, "fstat(3, 0x11ff8) = 0");
	check_call(CALL(SYS_nanosleep, BASE + SIZE - 8, 0), -EFAULT, NULL,
		   "nanosleep(0x11ff8, NULL) = -1 EFAULT (Bad address)");
}

static void strings_are_cut_and_escaped(void **state)
{
	put_text(0, "0123456789012345678901234567890123456789");
	check_call(CALL(SYS_write, 1, BASE, 40), 40, NULL,
		   "write(1, \"01234567890123456789012345678901\"..., 40) = 40");
	target.string_size = 3;
	check_call(CALL(SYS_write, 1, BASE, 40), 40, NULL, "write(1, \"012\"..., 40) = 40");
	check_call(CALL(SYS_write, 1, BASE, 3), 3, NULL, "write(1, \"012\", 3) = 3");
	check_call(CALL(SYS_chdir, BASE), 0, NULL, "chdir(\"0123456789012345678901234567890123456789\") = 0");
	target.string_size = 0;
	check_call(CALL(SYS_write, 1, BASE, 40), 40, NULL, "write(1, \"\"..., 40) = 40");
	target.string_size = 32;
	put(0, "\0a\0012\x7f\xff\"\\\t", 10);
	check_call(CALL(SYS_write, 1, BASE, 9), 9, NULL, "write(1, \"\\0a\\0012\\177\\377\\\"\\\\\\t\", 9) = 9");
}

static void arguments_that_depend_on_others_are_left_out(void **state)
{
	const uint64_t path = put_text(0, "/a");

	check_call(CALL(SYS_openat, (uint64_t)AT_FDCWD, path, O_RDONLY | O_CLOEXEC), 3, NULL,
		   "openat(AT_FDCWD, \"/a\", O_RDONLY|O_CLOEXEC) = 3");
	check_call(CALL(SYS_openat, (uint64_t)AT_FDCWD, path, O_WRONLY | O_CREAT, 0644), 3, NULL,
		   "openat(AT_FDCWD, \"/a\", O_WRONLY|O_CREAT, 0644) = 3");
	check_call(CALL(SYS_fcntl, 3, F_GETFL, 99), O_RDWR, "fcntl(3, F_GETFL",
		   "fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)");
	check_call(CALL(SYS_futex, BASE, 129, 1), 0, NULL, "futex(0x10000, FUTEX_WAKE_PRIVATE, 1) = 0");
	check_call(CALL(SYS_mremap, 0x1000, 1, 2, 1, 3), 0x2000, NULL, "mremap(0x1000, 1, 2, MREMAP_MAYMOVE) = 0x2000");
}

static void unknown_flags_and_numbers_are_shown_as_such(void **state)
{
	check_call(CALL(SYS_mprotect, 0x1000, 1, 0x103), 0, NULL,
		   "mprotect(0x1000, 1, PROT_READ|PROT_WRITE|0x100) = 0");
	check_call(CALL(SYS_mprotect, 0x1000, 1, 0x100), 0, NULL, "mprotect(0x1000, 1, 0x100 /* PROT_??? */) = 0");
	check_call(CALL(SYS_lseek, 3, (uint64_t)-5, 77), -EINVAL, NULL,
		   "lseek(3, -5, 0x4d /* SEEK_??? */) = -1 EINVAL (Invalid argument)");
	check_call(CALL(0x1c3, 1, 2, 3, 4, 5, 6), -ENOSYS, NULL,
		   "syscall_0x1c3(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = -1 ENOSYS (Function not implemented)");
	check_call(CALL(UINT64_MAX), -ENOSYS, NULL,
		   "syscall_0xffffffffffffffff(0, 0, 0, 0, 0, 0) = -1 ENOSYS (Function not implemented)");
	check_call(CALL(SYS_getpid), -4000, NULL, "getpid() = -1 (errno 4000)");
}

static void restarts_are_told_with_a_question_mark(void **state)
{
	check_call(CALL(SYS_pause), -514, NULL, "pause() = ? ERESTARTNOHAND (To be restarted if no handler)");
	check_call(CALL(SYS_accept, 3, 0, 0), -512, NULL,
		   "accept(3, NULL, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
}

static void descriptors_have_paths_where_they_are_wanted(void **state)
{
	const uint64_t path = put_text(0, "x");

	target.fd_path = fd_path;
	check_call(CALL(SYS_close, 0), 0, NULL, "close(0</dev/null>) = 0");
	check_call(CALL(SYS_close, 1), 0, NULL, "close(1<pipe:[7]>) = 0");
	check_call(CALL(SYS_close, 2), 0, NULL, "close(2</tmp/a\\74b>(deleted)) = 0");
	check_call(CALL(SYS_close, 9), 0, NULL, "close(9) = 0");
	check_call(CALL(SYS_openat, (uint64_t)AT_FDCWD, path, 0), 0, NULL,
		   "openat(AT_FDCWD</work>, \"x\", O_RDONLY) = 0</dev/null>");
}

static void vectors_end_where_the_transfer_did(void **state)
{
	struct iovec parts[2] = { { (void *)put(512, "abcdef", 6), 4 }, { (void *)(uintptr_t)(BASE + 516), 10 } };
	const uint64_t vector = put(0, parts, sizeof(parts));

	check_call(CALL(SYS_readv, 3, vector, 2), 5, "readv(3, ",
		   "readv(3, [{iov_base=\"abcd\", iov_len=4}, {iov_base=\"e\", iov_len=10}], 2) = 5");
	check_call(CALL(SYS_readv, 3, vector, 2), -EIO, NULL,
		   "readv(3, [{iov_base=0x10200, iov_len=4}, {iov_base=0x10204, iov_len=10}], 2) = -1 EIO "
		   "(Input/output error)");
	target.string_size = 1;
	check_call(CALL(SYS_writev, 3, vector, 2), 14, NULL,
		   "writev(3, [{iov_base=\"a\"..., iov_len=4}, ...], 2) = 14");
}

/* A length of what the caller says is in the target's hands: it must not be believed. */
static void huge_counts_are_bounded(void **state)
{
	struct kymo_line line = { 0 };

	for (uint64_t number = 0; number < KYMO_SYSCALL_MAX; number++) {
		struct kymo_syscall_call call =
			CALL(number, UINT64_MAX >> 1, BASE, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);

		kymo_line_clear(&line);
		kymo_syscall_enter(&call, &target, &line);
		call.result = INT64_MAX;
		kymo_syscall_leave(&call, &target, &line);
		kymo_syscall_result(&call, &target, &line);
		assert_true(line.n < 65536);
		for (unsigned i = 0; i < 6; i++)
			call.args[i] = BASE;
		kymo_line_clear(&line);
		kymo_syscall_enter(&call, &target, &line);
		kymo_syscall_leave(&call, &target, &line);
		kymo_syscall_result(&call, &target, &line);
		assert_true(line.n < 262144);
	}
	kymo_line_deinit(&line);
}

static void sets_of_signals_are_inverted_where_that_is_shorter(void **state)
{
	const uint64_t masks = put(0, (uint64_t[]){ 0, 3, ~0ull, ~0x100ull }, 32);

	check_call(CALL(SYS_rt_sigprocmask, SIG_BLOCK, masks, 0, 8), 0, NULL,
		   "rt_sigprocmask(SIG_BLOCK, [], NULL, 8) = 0");
	check_call(CALL(SYS_rt_sigprocmask, SIG_BLOCK, masks + 8, masks, 8), 0, "rt_sigprocmask(SIG_BLOCK, [HUP INT], ",
		   "rt_sigprocmask(SIG_BLOCK, [HUP INT], [], 8) = 0");
	check_call(CALL(SYS_rt_sigprocmask, SIG_SETMASK, masks + 16, 0, 8), 0, NULL,
		   "rt_sigprocmask(SIG_SETMASK, ~[], NULL, 8) = 0");
	check_call(CALL(SYS_rt_sigprocmask, SIG_SETMASK, masks + 24, 0, 8), 0, NULL,
		   "rt_sigprocmask(SIG_SETMASK, ~[KILL], NULL, 8) = 0");
}

static void check_siginfo(siginfo_t info, const char *text)
{
	struct kymo_line line = { 0 };

	kymo_siginfo_text(&info, &(struct kymo_syscall_target){ 0 }, &line);
	assert_string_equal(line.data, text);
	kymo_line_deinit(&line);
}

static void what_a_signal_tells_depends_on_its_sender(void **state)
{
	siginfo_t child = { .si_signo = SIGCHLD, .si_code = CLD_KILLED, .si_pid = 7, .si_uid = 8 };

	child.si_status = SIGKILL;
	child.si_utime = 123;
	check_siginfo(child, "{si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=7, si_uid=8, si_status=SIGKILL, "
			     "si_utime=123 /* 1.23 s */, si_stime=0}");
	check_siginfo((siginfo_t){ .si_signo = SIGSEGV, .si_code = SEGV_MAPERR, .si_addr = (void *)0x55 },
		      "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x55}");
	check_siginfo((siginfo_t){ .si_signo = SIGINT, .si_code = SI_KERNEL }, "{si_signo=SIGINT, si_code=SI_KERNEL}");
	check_siginfo((siginfo_t){ .si_signo = 35, .si_code = SI_TKILL, .si_pid = 7 },
		      "{si_signo=SIGRT_3, si_code=SI_TKILL, si_pid=7, si_uid=0}");
	check_siginfo((siginfo_t){ .si_signo = SIGHUP, .si_code = 77, .si_errno = EIO },
		      "{si_signo=SIGHUP, si_code=0x4d /* SI_??? */, si_errno=EIO}");
}

static void paths_and_descriptors_are_found(void **state)
{
	struct kymo_syscall_call open = CALL(SYS_openat, (uint64_t)AT_FDCWD, put_text(0, "/etc/passwd"), 0),
				 close = CALL(SYS_close, 0);

	target.fd_path = fd_path;
	assert_true(kymo_syscall_touches(&open, &target, "/etc/passwd"));
	assert_false(kymo_syscall_touches(&open, &target, "/etc/passw"));
	assert_false(kymo_syscall_touches(&open, &target, "/etc/passwd-"));
	assert_true(kymo_syscall_touches(&close, &target, "/dev/null"));
	assert_false(kymo_syscall_touches(&close, &target, "/dev/nul"));
}

static void descriptors_in_sets_are_found(void **state)
{
	struct pollfd fds[70] = { 0 };
	uint64_t set[2] = { 0 };
	struct kymo_syscall_call poll = CALL(SYS_poll, BASE, 70, 0),
				 select = CALL(SYS_select, 66, 0, BASE + 1024, 0, 0);

	target.fd_path = fd_path;
	for (unsigned i = 0; i < 70; i++)
		fds[i].fd = i % 2 ? -1 : 1;
	put(0, fds, sizeof(fds));
	assert_false(kymo_syscall_touches(&poll, &target, "/dev/null"));
	assert_true(kymo_syscall_touches(&poll, &target, "pipe:[7]"));
	put(69 * sizeof(*fds), &(struct pollfd){ .fd = 0 }, sizeof(*fds));
	assert_true(kymo_syscall_touches(&poll, &target, "/dev/null"));
	poll.args[1] = 69;
	assert_false(kymo_syscall_touches(&poll, &target, "/dev/null"));
	poll.args[0] = 0;
	assert_false(kymo_syscall_touches(&poll, &target, "pipe:[7]"));

	put(1024, set, sizeof(set));
	assert_false(kymo_syscall_touches(&select, &target, "pipe:[7]"));
	set[0] = 2;
	put(1024, set, sizeof(set));
	assert_true(kymo_syscall_touches(&select, &target, "pipe:[7]"));
	assert_false(kymo_syscall_touches(&select, &target, "/dev/null"));
	select.args[0] = 1;
	assert_false(kymo_syscall_touches(&select, &target, "pipe:[7]"));
	select.args[0] = (uint64_t)-1;
	assert_false(kymo_syscall_touches(&select, &target, "pipe:[7]"));
}

static void control_messages_are_shown_as_far_as_they_can_be_read(void **state)
{
	struct msghdr message = { .msg_control = (void *)(BASE + 256), .msg_controllen = 40 };
	const uint64_t header = put(0, &message, sizeof(message));
	char long_message[512];

	put(256, &(struct cmsghdr){ 20, 41, 50 }, 16); /* IPV6_PKTINFO: no decoder for it */
	put(272, "abcd", 4);
	put(280, &(struct cmsghdr){ 16, SOL_SOCKET, SCM_CREDENTIALS }, 16);
	check_call(CALL(SYS_sendmsg, 3, header, 0), -EBADF, NULL,
		   "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=NULL, msg_iovlen=0, msg_control=[{cmsg_len=20, "
		   "cmsg_level=SOL_IPV6, "
		   "cmsg_type=0x32, cmsg_data=\"abcd\"}, {cmsg_len=16, cmsg_level=SOL_SOCKET, "
		   "cmsg_type=SCM_CREDENTIALS}], "
		   "msg_controllen=40, msg_flags=0}, 0) = -1 EBADF (Bad file descriptor)");
	message.msg_control = (void *)(BASE + SIZE - 16);
	put(0, &message, sizeof(message));
	put(SIZE - 16, &(struct cmsghdr){ 16, SOL_SOCKET, SCM_RIGHTS }, 16);
	check_call(CALL(SYS_sendmsg, 3, header, 0), -EFAULT, NULL,
		   "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=NULL, msg_iovlen=0, msg_control=[{cmsg_len=16, "
		   "cmsg_level=SOL_SOCKET, "
		   "cmsg_type=SCM_RIGHTS}, ... /* 0x12000 */], msg_controllen=40, msg_flags=0}, 0) = -1 EFAULT (Bad "
		   "address)");
	message = (struct msghdr){ .msg_control = (void *)(BASE + 256), .msg_controllen = SIZE_MAX };
	put(0, &message, sizeof(message));
	for (unsigned i = 0; i < 4; i++)
		put(256 + 16 * i, &(struct cmsghdr){ 16, SOL_SOCKET, SCM_RIGHTS }, 16);
	target.string_size = 2;
	snprintf(long_message, sizeof(long_message),
		 "sendmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=NULL, msg_iovlen=0, msg_control=[%s, %s, ..., "
		 "...], msg_controllen=%zu, "
		 "msg_flags=0}, 0) = -1 ENOBUFS (No buffer space available)",
		 "{cmsg_len=16, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS}",
		 "{cmsg_len=16, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS}", SIZE_MAX);
	check_call(CALL(SYS_sendmsg, 3, header, 0), -ENOBUFS, NULL, long_message);
}

static void options_of_a_socket_are_never_read_beyond_their_size(void **state)
{
	memset(memory + SIZE - 8, 1, 8);
	check_call(CALL(SYS_setsockopt, 3, SOL_IP, 42, BASE + SIZE - 8, 8), -EINVAL, NULL,
		   "setsockopt(3, SOL_IP, MCAST_JOIN_GROUP, 0x11ff8, 8) = -1 EINVAL (Invalid argument)");
	check_call(CALL(SYS_setsockopt, 3, SOL_IP, 42, BASE + SIZE - 8, 136), -EFAULT, NULL,
		   "setsockopt(3, SOL_IP, MCAST_JOIN_GROUP, 0x11ff8, 136) = -1 EFAULT (Bad address)");
	check_call(CALL(SYS_setsockopt, 3, SOL_SOCKET, SO_LINGER, BASE + SIZE - 8, (uint64_t)-1), -EINVAL, NULL,
		   "setsockopt(3, SOL_SOCKET, SO_LINGER, 0x11ff8, -1) = -1 EINVAL (Invalid argument)");
	put(0, &(int){ 5 }, 4);
	check_call(CALL(SYS_getsockopt, 3, SOL_SOCKET, SO_LINGER, BASE + SIZE - 5, BASE), 0, NULL,
		   "getsockopt(3, SOL_SOCKET, SO_LINGER, {l_onoff=16843009, l_linger=\"\\x01\"}, [5]) = 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_the_kernel_writes_is_shown_at_the_exit, setup),
		cmocka_unit_test_setup(memory_that_is_not_there_is_shown_as_its_address, setup),
		cmocka_unit_test_setup(strings_are_cut_and_escaped, setup),
		cmocka_unit_test_setup(arguments_that_depend_on_others_are_left_out, setup),
		cmocka_unit_test_setup(unknown_flags_and_numbers_are_shown_as_such, setup),
		cmocka_unit_test_setup(restarts_are_told_with_a_question_mark, setup),
		cmocka_unit_test_setup(descriptors_have_paths_where_they_are_wanted, setup),
		cmocka_unit_test_setup(vectors_end_where_the_transfer_did, setup),
		cmocka_unit_test_setup(huge_counts_are_bounded, setup),
		cmocka_unit_test_setup(control_messages_are_shown_as_far_as_they_can_be_read, setup),
		cmocka_unit_test_setup(options_of_a_socket_are_never_read_beyond_their_size, setup),
		cmocka_unit_test_setup(sets_of_signals_are_inverted_where_that_is_shorter, setup),
		cmocka_unit_test_setup(what_a_signal_tells_depends_on_its_sender, setup),
		cmocka_unit_test_setup(paths_and_descriptors_are_found, setup),
		cmocka_unit_test_setup(descriptors_in_sets_are_found, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
