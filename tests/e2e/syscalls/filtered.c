/*
 * What a program may do that conflicts with another seccomp filter: filters of its own, children without a tracer.
 * Prints what came of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long result)
{
	printf("%s %s\n", what, result < 0 ? strerror(errno) : "done");
	fflush(stdout);
}

static void refuse(unsigned int number, uint32_t verdict)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void wait_for(const char *what, pid_t child)
{
	int status = -1;

	waitpid(child, &status, __WALL);
	printf("%s %d\n", what, status >> 8);
	fflush(stdout);
}

int main(void)
{
	struct clone_args args = { .flags = CLONE_UNTRACED, .exit_signal = SIGCHLD };
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(getppid() > 0 ? 3 : 4);
	wait_for("clone", child);
	child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!child)
		_exit(getppid() > 0 ? 3 : 4);
	if (child < 0)
		say("clone3", child);
	else
		wait_for("clone3", child);
	say("getppid", getppid());
	refuse(SYS_sethostname, SECCOMP_RET_ERRNO | EXDEV);
	say("errno", sethostname("x", 1u << 20));
	refuse(SYS_getppid, SECCOMP_RET_TRACE | 7);
	say("trace", syscall(SYS_getppid));
	refuse(SYS_chdir, SECCOMP_RET_TRACE | 7);
	say("trace of what passes", chdir("/"));
	return 0;
}
