/*
 * Where lines go. They are written on the hub's thread, and nobody that is traced gets on meanwhile; so a reader who
 * does not read, or a terminal that is halted, holds up others than the user's own process too. He is waited for, as by
 * any program, until the user's kymo is no more, or while nobody else needs the hub.
 */
#include "cli/syscall_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/output.h"
#include "cli/syscall_wake.h"
#include "cli/syscalls.h"

enum { LOOK_MS = 100, DESCRIPTORS = 256 };

/* A pipe or terminal is opened once more, so that not waiting for it is our own business. Where that can't be, little
 * is written at a time, and only when there is room. */
static int open_for_ourselves(int fd, bool *waits_ret)
{
	struct stat info;
	char name[32];
	int own = -1;

	*waits_ret = false;
	if (fstat(fd, &info))
		return fd;
	if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode) && !S_ISSOCK(info.st_mode))
		return fd;
	if (!S_ISSOCK(info.st_mode)) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		own = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	*waits_ret = own < 0;
	return own < 0 ? fd : own;
}

/* False: nobody waits for it any more. */
static bool wait_for_room(struct cli_syscalls *s)
{
	uint64_t deadline_ns = UINT64_MAX;

	for (;;) {
		struct pollfd fds[] = { { .fd = s->output.fd, .events = POLLOUT },
					{ .fd = s->output.worker.front, .events = POLLIN } };
		const int n = poll(fds, s->output.worker.front < 0 ? 1 : 2, LOOK_MS);
		const uint64_t now_ns = kymo_now_ns();

		if (n > 0 && s->output.worker.front >= 0 && fds[1].revents)
			return false;
		if (n > 0 || (n < 0 && errno != EINTR))
			return true;
		if (!s->tracing.hub || !kymo_hub_clients(s->tracing.hub))
			deadline_ns = UINT64_MAX;
		else if (deadline_ns == UINT64_MAX)
			deadline_ns = now_ns + KYMO_ANSWER_MS * 1000000ull;
		if (now_ns >= deadline_ns)
			return false;
	}
}

/* As a write that fails. */
static ssize_t give_up(struct cli_syscalls *s, int err)
{
	s->output.write_error = err;
	cli_syscalls_wake(s, CLI_SYSCALLS_END);
	return 0;
}

static ssize_t put_text(void *cookie, const char *text, size_t size)
{
	struct cli_syscalls *s = cookie;
	size_t done = 0;

	if (s->output.write_error)
		return 0;
	while (done < size && !s->output.is_stuck) {
		const size_t rest = size - done;
		ssize_t n = -1;

		if (s->output.waits && !wait_for_room(s)) {
			s->output.is_stuck = true;
			break;
		}
		n = write(s->output.fd, text + done, s->output.waits && rest > PIPE_BUF ? PIPE_BUF : rest);
		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			s->output.is_stuck = !wait_for_room(s);
		else if (errno != EINTR)
			return give_up(s, errno);
	}
	if (s->output.is_stuck)
		cli_syscalls_wake(s, CLI_SYSCALLS_END);
	return (ssize_t)done;
}

static int close_own(void *cookie)
{
	struct cli_syscalls *s = cookie;

	return s->output.fd == STDERR_FILENO ? 0 : close(s->output.fd);
}

/* Whether it is something that this program was started with, by another name (/dev/stdout, /dev/fd/63). */
static bool is_own(int fd, const struct stat *st)
{
	struct stat own;

	for (int i = 0; i < DESCRIPTORS; i++)
		if (i != fd && !fstat(i, &own) && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
			return true;
	return false;
}

/*
 * What calls read and write is for this user alone, also in a file that was there. The file or pipe of another user,
 * who has put it there perhaps, is left alone. Other pipes, and terminals, stay as they are.
 */
static int make_private(int fd, bool appends)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return 0;
	if (st.st_uid != geteuid())
		return is_own(fd, &st) ? 0 : -EEXIST;
	return S_ISREG(st.st_mode) && (fchmod(fd, 0600) || (!appends && ftruncate(fd, 0))) ? -errno : 0;
}

/* `flag`: O_NONBLOCK, or 0 where the reader of a pipe is waited for. */
static int open_file(const char *path, bool appends, int flag)
{
	const int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC | (appends ? O_APPEND : 0);
	kymo_cleanup_close int fd = open(path, flags | flag, 0600);
	int err = fd < 0 ? -errno : make_private(fd, appends);

	if (!err && flag && fcntl(fd, F_SETFL, appends ? O_APPEND : 0))
		err = -errno;
	return err ? err : kymo_take_fd(fd);
}

/* A shell that runs `command` with the lines for its input: where they go, or a negative errno. */
static int open_filter(struct cli_syscalls *s, const char *command)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	s->output.filter = fork();
	if (!s->output.filter) {
		dup2(ends[0], STDIN_FILENO);
		if (s->output.worker.front >= 0)
			sigprocmask(SIG_SETMASK, &s->output.worker.mask, NULL);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	err = errno;
	close(ends[0]);
	if (s->output.filter > 0)
		return ends[1];
	close(ends[1]);
	s->output.filter = 0;
	return -err;
}

static int open_path(struct cli_syscalls *s, const char *path, bool appends)
{
	if (!path)
		return STDERR_FILENO;
	return strchr("|!", *path) ? open_filter(s, path + 1) : open_file(path, appends, 0);
}

int cli_syscalls_open_own_output(struct cli_syscall_thread *thread)
{
	kymo_cleanup_free char *path = NULL;
	int fd;

	if (asprintf(&path, "%s.%d", thread->owner->output.path, thread->tid) < 0)
		return -ENOMEM;
	fd = open_file(path, thread->owner->output.appends, O_NONBLOCK); /* the thread stands still meanwhile */
	if (fd < 0) {
		cli_warn("cannot write %s: %s", path,
			 fd == -EEXIST ? "it belongs to another user; choose another name with -o" : strerror(-fd));
		return -EIO;
	}
	thread->out = fdopen(fd, "w");
	if (!thread->out)
		close(fd);
	return thread->out ? 0 : -ENOMEM;
}

void cli_syscalls_close_output(struct cli_syscalls *s)
{
	if (s->output.file)
		fclose(s->output.file);
	s->output.file = NULL;
	while (s->output.filter && waitpid(s->output.filter, NULL, 0) < 0 && errno == EINTR)
		;
	s->output.filter = 0;
}

int cli_syscalls_open_output(struct cli_syscalls *s, const char *path, bool appends)
{
	const int fd = open_path(s, s->output.is_separate ? NULL : path, appends);

	if (fd < 0)
		return fd;
	s->output.path = path;
	s->output.appends = appends;
	s->output.is_file = path;
	s->output.fd = open_for_ourselves(fd, &s->output.waits);
	if (s->output.fd != fd && fd != STDERR_FILENO)
		close(fd);
	s->output.file = fopencookie(s, "w", (cookie_io_functions_t){ .write = put_text, .close = close_own });
	return s->output.file ? 0 : -ENOMEM;
}
