/* Calls that signals interrupt: one is made again, one fails, one is left by a jump, and one never returns. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fds[2];
static sigjmp_buf before;

static void on_alarm(int number)
{
	syscall(SYS_write, fds[1], "x", 1);
}

static void jump(int number)
{
	siglongjmp(before, 1);
}

static void wait_in_read(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	char byte;

	sigaction(SIGALRM, &action, NULL);
	ualarm(50000, 0);
	syscall(SYS_read, fds[0], &byte, 1);
}

int main(void)
{
	if (pipe(fds))
		abort();
	wait_in_read(on_alarm, SA_RESTART);
	wait_in_read(on_alarm, 0);
	syscall(SYS_read, fds[0], &(char){ 0 }, 1);
	if (!sigsetjmp(before, 1))
		wait_in_read(jump, 0);
	signal(SIGALRM, SIG_DFL);
	ualarm(50000, 0);
	syscall(SYS_read, fds[0], &(char){ 0 }, 1);
	abort();
}
