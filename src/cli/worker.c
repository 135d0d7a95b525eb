#include "cli/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/signals.h"

/* What the worker says to the front. */
struct word {
	int status;
	char sentence[252]; /* or "" */
};

/* ---- the front ------------------------------------------------------------------------------- */

static volatile sig_atomic_t worker_pid;

enum { REAP_MS = 50 };

/* The handler is for signals that were meant for kymo. */
static void forward(int number)
{
	if (worker_pid)
		kill(worker_pid, number);
}

static int end_of_worker(pid_t pid, const char *loss)
{
	int status;

	worker_pid = 0; /* its id may be another's soon */
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cli_fail(NULL, kymo_error_errno(errno, "cannot wait for process %d, which traces", pid));
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGPIPE) /* the reader of its output has gone */
		return 128 + SIGPIPE;
	return cli_fail(NULL, kymo_error_create(KYMO_ERROR_FAILED,
						"process %d, which did the tracing, was ended by signal %d (%s): %s",
						pid, WTERMSIG(status), strsignal(WTERMSIG(status)), loss));
}

/* The first process of a PID namespace (a container's) gets the orphans of all others, and their parents may wait for
 * their end. Until the channel has something. */
static void reap_orphans(int channel)
{
	struct pollfd word = { .fd = channel, .events = POLLIN };

	while (getpid() == 1 && poll(&word, 1, REAP_MS) == 0) {
		siginfo_t info = { .si_pid = 0 };

		while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
		       info.si_pid != worker_pid)
			waitpid(info.si_pid, NULL, 0);
	}
}

static int be_front(pid_t pid, int channel, const char *loss)
{
	struct word word;
	ssize_t n;

	do {
		reap_orphans(channel);
		n = recv(channel, &word, sizeof(word), 0);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(word))
		return end_of_worker(pid, loss);
	if (*word.sentence)
		fprintf(stderr, "kymo: %.*s\n", (int)sizeof(word.sentence), word.sentence);
	return word.status;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void block_signals(bool launches, sigset_t *mask_ret)
{
	sigset_t ours;

	cli_ending_signals(launches, &ours);
	sigprocmask(SIG_BLOCK, &ours, mask_ret);
}

int cli_worker_begin(bool launches, const char *loss, struct cli_worker *ret)
{
	struct sigaction waits = { .sa_handler = SIG_DFL }, before;
	struct cli_worker worker;
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return cli_fail(NULL, kymo_error_errno(errno, "cannot begin to trace"));
	block_signals(launches, &worker.mask);
	sigaction(SIGCHLD, &waits,
		  &before); /* where it is ignored, ends of children are not told; the command has it as it was */
	pid = fork();
	if (!pid) {
		sigaction(SIGCHLD, &before, NULL);
		close(pair[0]);
		worker.front = pair[1];
		*ret = worker;
		return -1;
	}
	status = errno;
	close(pair[1]);
	if (pid > 0) {
		worker_pid = pid;
		cli_catch_signals(launches, SA_RESTART, forward);
	}
	sigprocmask(SIG_SETMASK, &worker.mask, NULL);
	status = pid > 0 ? be_front(pid, pair[0], loss)
			 : cli_fail(NULL, kymo_error_errno(status, "cannot begin to trace"));
	close(pair[0]);
	return status;
}

/* ---- the worker ------------------------------------------------------------------------------ */

void cli_worker_take_signals(const struct cli_worker *worker)
{
	if (worker->front >= 0)
		sigprocmask(SIG_SETMASK, &worker->mask, NULL);
}

void cli_worker_leave_job(void)
{
	setsid();
}

bool cli_worker_is_alone(const struct cli_worker *worker)
{
	struct pollfd front = { .fd = worker->front, .events = POLLIN };

	return worker->front >= 0 && poll(&front, 1, 0) > 0;
}

/* Whatever kymo opens is closed by an exec; what it was given has survived one. */
static void close_inherited(void)
{
	kymo_cleanup_closedir DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		const int fd = atoi(entry->d_name), flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
}

static void close_standard_streams(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0)
			close(fd);
		else if (null != fd)
			dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

void cli_worker_dismiss(struct cli_worker *worker, int status, const char *sentence)
{
	struct word word = { .status = status };

	if (sentence)
		snprintf(word.sentence, sizeof(word.sentence), "%s", sentence);
	fflush(stdout);
	close_standard_streams();
	close_inherited();
	if (chdir("/") < 0)
		errno = 0; /* then its file system stays busy */
	prctl(PR_SET_NAME, "kymo-hub");
	send(worker->front, &word, sizeof(word), MSG_NOSIGNAL);
	close(worker->front);
	worker->front = -1;
}
