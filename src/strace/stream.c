/*
 * Where lines go. The hub's thread writes them, and meanwhile no stop of a traced thread is handled; so a reader who
 * does not read, or a terminal that is halted, holds up others than the user's own process too. kymo waits for the
 * reader, as any program does, until the user's kymo has ended, or while no other client needs the hub.
 */
#include "strace/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "strace/state.h"
#include "strace/wake.h"

enum { LOOK_MS = 100 };

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

/* False: no process waits for it any more. */
static bool wait_for_room(struct kymo_strace *s)
{
	uint64_t deadline_ns = UINT64_MAX;

	for (;;) {
		struct pollfd fds[] = { { .fd = s->stream.fd, .events = POLLOUT },
					{ .fd = s->user->front, .events = POLLIN } };
		const int n = poll(fds, s->user->front < 0 ? 1 : 2, LOOK_MS);
		const uint64_t now_ns = kymo_now_ns();

		if (n > 0 && s->user->front >= 0 && fds[1].revents)
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
static ssize_t give_up(struct kymo_strace *s, int err)
{
	s->stream.write_error = err;
	strace_wake(s, STRACE_END);
	return 0;
}

static ssize_t put_text(void *cookie, const char *text, size_t size)
{
	struct kymo_strace *s = cookie;
	size_t done = 0;

	if (s->stream.write_error)
		return 0;
	while (done < size && !s->stream.is_stuck) {
		const size_t rest = size - done;
		ssize_t n = -1;

		if (s->stream.waits && !wait_for_room(s)) {
			s->stream.is_stuck = true;
			break;
		}
		n = write(s->stream.fd, text + done, s->stream.waits && rest > PIPE_BUF ? PIPE_BUF : rest);
		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			s->stream.is_stuck = !wait_for_room(s);
		else if (errno != EINTR)
			return give_up(s, errno);
	}
	if (s->stream.is_stuck)
		strace_wake(s, STRACE_END);
	return (ssize_t)done;
}

static int close_own(void *cookie)
{
	struct kymo_strace *s = cookie;

	return s->stream.fd == STDERR_FILENO ? 0 : close(s->stream.fd);
}

int strace_stream_open(struct kymo_strace *s, int fd)
{
	s->stream.fd = open_for_ourselves(fd, &s->stream.waits);
	if (s->stream.fd != fd && fd != STDERR_FILENO)
		close(fd);
	s->stream.file = fopencookie(s, "w", (cookie_io_functions_t){ .write = put_text, .close = close_own });
	if (s->stream.file)
		return 0;
	close_own(s);
	return -ENOMEM;
}

void strace_stream_close(struct kymo_strace *s)
{
	if (s->stream.file)
		fclose(s->stream.file);
	s->stream.file = NULL;
}
