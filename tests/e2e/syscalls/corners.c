/*
 * What may be in the way of recorded system calls, by the argument.
 *
 *	handlers	a thread sleeps in a call; when a line comes it is in a handler, upon which another runs on an
 *			alternate stack; with the next line all go on
 *	canceled	a thread sleeps in a call, and is canceled when a line comes
 *	dispatch	calls are signals outside of one range of addresses
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif

static int ends[2];
static volatile sig_atomic_t in_first, in_second, may_go;
static volatile char selector; /* SYSCALL_DISPATCH_FILTER_ALLOW */

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void wait_for_line(void)
{
	while (getchar() != '\n')
		;
}

static void on_first(int number)
{
	in_first = 1;
	while (!in_second)
		;
}

static void on_second(int number)
{
	in_second = 1;
	while (!may_go)
		;
}

static void *sleep_in_read(void *unused)
{
	static char other[65536];
	char byte = 0;

	if (sigaltstack(&(stack_t){ .ss_sp = other, .ss_size = sizeof(other) }, NULL))
		abort();
	say("ready");
	return (void *)(read(ends[0], &byte, 1) == 1 && byte == 'x');
}

static int handlers(void)
{
	pthread_t thread;
	void *is_right;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_first, .sa_flags = SA_RESTART }, NULL);
	sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = on_second, .sa_flags = SA_RESTART | SA_ONSTACK }, NULL);
	if (pipe(ends) || pthread_create(&thread, NULL, sleep_in_read, NULL))
		abort();
	wait_for_line();
	pthread_kill(thread, SIGUSR1);
	while (!in_first)
		usleep(1000);
	pthread_kill(thread, SIGUSR2);
	while (!in_second)
		usleep(1000);
	say("inside");
	wait_for_line();
	may_go = 1;
	if (write(ends[1], "x", 1) != 1)
		abort();
	pthread_join(thread, &is_right);
	say(is_right ? "right" : "wrong");
	return 0;
}

static void clean_up(int *unused)
{
	say("cleaned up");
}

static void *sleep_until_canceled(void *unused)
{
	__attribute__((cleanup(clean_up))) int guarded = 0;
	char byte;

	say("ready");
	read(ends[0], &byte, 1);
	return unused;
}

static int canceled(void)
{
	pthread_t thread;

	if (pipe(ends) || pthread_create(&thread, NULL, sleep_until_canceled, NULL))
		abort();
	wait_for_line();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	say("joined");
	return 0;
}

static int dispatch(void)
{
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector)) {
		say("not here");
		return 0;
	}
	say("ready");
	wait_for_line();
	say("right");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "handlers"))
		return handlers();
	if (argc == 2 && !strcmp(argv[1], "canceled"))
		return canceled();
	if (argc == 2 && !strcmp(argv[1], "dispatch"))
		return dispatch();
	return 2;
}
