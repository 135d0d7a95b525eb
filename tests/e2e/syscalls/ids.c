/* Ids of processes and of groups, flags that do not occur alone, and invalid times. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/ioprio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

static void show_ids(int fd)
{
	const pid_t pid = getpid(), group = getpgrp();
	const struct f_owner_ex owners[] = { { F_OWNER_TID, pid }, { F_OWNER_PID, pid }, { F_OWNER_PGRP, group } };
	struct f_owner_ex owner;
	siginfo_t info = { .si_signo = SIGCHLD, .si_code = SI_QUEUE, .si_pid = pid };

	getpgid(0);
	getpgid(pid);
	setpgid(pid, group);
	fcntl(fd, F_SETOWN, pid);
	fcntl(fd, F_GETOWN);
	fcntl(fd, F_SETOWN, -group);
	for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++) {
		fcntl(fd, F_SETOWN_EX, &owners[i]);
		fcntl(fd, F_GETOWN_EX, &owner);
	}
	for (int which = PRIO_PROCESS; which <= PRIO_USER + 1; which++) {
		const int nice = getpriority(which, 0);

		setpriority(which, which == PRIO_PGRP ? group : pid, nice);
	}
	syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid);
	syscall(SYS_ioprio_get, IOPRIO_WHO_PGRP, group);
	syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGCHLD, &info);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOHANG);
	waitid(P_PGID, (id_t)group, NULL, WEXITED | WNOHANG);
	waitid(P_PIDFD, (id_t)fd, NULL, WEXITED | WNOHANG);
	waitid(P_ALL, 7, NULL, WEXITED | WNOHANG);
}

int main(void)
{
	const struct timespec times_of[2][2] = { { { 5, UTIME_NOW }, { 6, UTIME_OMIT } },
						 { { 0, 0 }, { -1, 999999999 } } };
	int fd = open("/dev/null", O_RDWR);
	struct statx st;
	struct rusage usage;

	show_ids(fd);
	open("/nonexistent/file", O_RDONLY | (O_SYNC & ~O_DSYNC));
	open("/nonexistent/file", O_WRONLY | (O_TMPFILE & ~O_DIRECTORY), 0);
	open("/nonexistent/file", O_RDWR | O_SYNC | O_DSYNC);
	for (int i = 0; i < 2; i++)
		utimensat(AT_FDCWD, "/nonexistent/file", times_of[i], AT_SYMLINK_NOFOLLOW);
	syscall(SYS_close_range, ~0u - 1, ~0u, 0);
	syscall(SYS_close_range, ~0u, 0, 2);
	statx(AT_FDCWD, "/dev/null", 0, STATX_BASIC_STATS, &st);
	statx(AT_FDCWD, "/etc/passwd", 0, STATX_SIZE | STATX_BTIME, &st);
	memset(&usage, 0, sizeof(usage));
	getrusage(RUSAGE_CHILDREN, &usage);
	return 0;
}
