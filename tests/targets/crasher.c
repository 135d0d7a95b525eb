/*
 * crasher [-w] N HOW
 *
 * Calls work_a() N times and then ends: segv, abort, kill (by SIGKILL), trap, term, stack (overflow), _exit (7), exit
 * (7), return (7), exec (of true), thread: the main thread ends first, another calls work_a() N times more and exits
 * with 7. -w waits for a line on stdin first, and the thread for another one, or the end of stdin, before it exits.
 */
#include <pthread.h>
#include <signal.h>

#include "target.h"
#include "work.h"

static long n;
static int waits;

static void call(void)
{
	for (long i = 0; i < n; i++)
		CHECK(work_a((int)i, i) == expect_a((int)i, i));
}

static __attribute__((noinline)) long overflow(volatile char *above, long depth)
{
	volatile char big[4096];

	big[0] = above[0];
	return depth < 0 ? 0 : overflow(big, depth + 1) + big[0];
}

static void *outlive(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL);
	call();
	if (waits)
		wait_for_line();
	exit(7);
}

static void end_main_thread(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	CHECK(pthread_create(&thread, NULL, outlive, &self) == 0);
	pthread_exit(NULL);
}

static void crash(const char *how)
{
	static char start[1];
	volatile int *nowhere = (volatile int *)8;

	__asm__ volatile("" : "+r"(nowhere)); /* compilers complain about what they know */
	if (!strcmp(how, "segv"))
		*nowhere = 1;
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "kill"))
		raise(SIGKILL);
	else if (!strcmp(how, "term"))
		raise(SIGTERM);
	else if (!strcmp(how, "trap"))
		__asm__ volatile("int3");
	else if (!strcmp(how, "stack"))
		overflow(start, 0);
	else if (!strcmp(how, "_exit"))
		_exit(7);
	else if (!strcmp(how, "exit"))
		exit(7);
	else if (!strcmp(how, "thread"))
		end_main_thread();
	else if (!strcmp(how, "exec"))
		execlp("true", "true", (char *)NULL);
}

int main(int argc, char **argv)
{
	waits = argc == 4 && !strcmp(argv[1], "-w");
	if (argc != 3 + waits)
		return 2;
	n = number(argv[1 + waits]);
	say("ready\n");
	if (waits)
		wait_for_line();
	call();
	crash(argv[2 + waits]);
	return !strcmp(argv[2 + waits], "return") ? 7 : 2;
}
