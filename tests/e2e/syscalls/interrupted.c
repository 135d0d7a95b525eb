/* Calls that signals interrupt: one is made again, one fails, one is left by a jump, and one never returns. A child
 * sends each signal when the call sleeps. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fds[2];
static sigjmp_buf before;
static atomic_int *n_wanted; /* signals; shared with the child */

static void on_alarm(int number)
{
	syscall(SYS_write, fds[1], "x", 1);
}

static void jump(int number)
{
	siglongjmp(before, 1);
}

/* Its calls are of other kinds than those that are recorded. */
static void send_signals(pid_t parent)
{
	char path[64], text[512] = "";
	int stat;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "/proc/%d/stat", parent);
	stat = open(path, O_RDONLY);
	for (int n = 0; getppid() == parent && pread(stat, text, sizeof(text) - 1, 0) > 0; usleep(1000))
		if (*n_wanted > n && !strncmp(strrchr(text, ')'), ") S", 3))
			n += !kill(parent, SIGALRM);
	_exit(0);
}

static void wait_in_read(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	char byte;

	sigaction(SIGALRM, &action, NULL);
	++*n_wanted;
	syscall(SYS_read, fds[0], &byte, 1);
}

int main(void)
{
	pid_t self = getpid();

	n_wanted = mmap(NULL, sizeof(*n_wanted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(fds) || n_wanted == MAP_FAILED)
		abort();
	if (!fork())
		send_signals(self);
	wait_in_read(on_alarm, SA_RESTART);
	wait_in_read(on_alarm, 0);
	syscall(SYS_read, fds[0], &(char){ 0 }, 1);
	if (!sigsetjmp(before, 1))
		wait_in_read(jump, 0);
	signal(SIGALRM, SIG_DFL);
	++*n_wanted;
	syscall(SYS_read, fds[0], &(char){ 0 }, 1);
	abort();
}
