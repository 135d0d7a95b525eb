/* Files and commands that lines go to. */
#include "cli/syscall_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/worker.h"

enum { DESCRIPTORS = 256 };

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
 * What calls read and write is for this user alone, also in a file that was there. A file or pipe that belongs to
 * another user is left alone. Other pipes, and terminals, stay as they are.
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

/* A shell that runs the command with the lines for its input: where they go, or a negative errno. */
static int open_filter(struct cli_syscall_output *output, const struct cli_worker *worker)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	output->filter = fork();
	if (!output->filter) {
		dup2(ends[0], STDIN_FILENO);
		cli_worker_take_signals(worker);
		execl("/bin/sh", "sh", "-c", output->path + 1, NULL);
		_exit(127);
	}
	err = errno;
	close(ends[0]);
	if (output->filter > 0)
		return ends[1];
	close(ends[1]);
	output->filter = 0;
	return -err;
}

bool cli_syscall_output_is_command(const struct cli_syscall_output *output)
{
	return output->path && strchr("|!", *output->path);
}

int cli_syscall_output_open(struct cli_syscall_output *output, const struct cli_worker *worker)
{
	if (!output->path)
		return STDERR_FILENO;
	if (cli_syscall_output_is_command(output))
		return open_filter(output, worker);
	return open_file(output->path, output->appends, 0);
}

int cli_syscall_output_open_own(const struct cli_syscall_output *output, pid_t tid, FILE **ret)
{
	kymo_cleanup_free char *path = NULL;
	int fd;

	if (asprintf(&path, "%s.%d", output->path, tid) < 0)
		return -ENOMEM;
	fd = open_file(path, output->appends, O_NONBLOCK); /* the thread is stopped meanwhile */
	if (fd < 0) {
		cli_warn("cannot write %s: %s", path,
			 fd == -EEXIST ? "it belongs to another user; choose another name with -o" : strerror(-fd));
		return -EIO;
	}
	*ret = fdopen(fd, "w");
	if (!*ret)
		close(fd);
	return *ret ? 0 : -ENOMEM;
}

void cli_syscall_output_wait(struct cli_syscall_output *output)
{
	while (output->filter && waitpid(output->filter, NULL, 0) < 0 && errno == EINTR)
		;
	output->filter = 0;
}
