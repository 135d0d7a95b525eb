/*
 * leaps [-w] [N]
 *
 * N (200) times leaves functions in every way but by their return: longjmp, siglongjmp out of a handler, setcontext and
 * swapcontext, the end of a thread in the middle, cancellation, and signal handlers that return through sigreturn.
 * Checks where it comes out; prints how often each function was entered and left by a return.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "target.h"
#include "work.h"

long leap_deep(long n);
long leap_handler(long n);
long leap_context(long n);
long leap_thread(long n);
long leap_canceled(long n);
long leap_plain(long n);

static struct {
	long deep, handler, context, thread, canceled, plain;
	long returns; /* of leap_deep and leap_plain: all others never return */
} counts;

static jmp_buf out;
static sigjmp_buf out_of_handler;
static ucontext_t here, there, back;
static _Alignas(16) char stack[65536];
static atomic_int waiting;
static bool leaps_out;

PROBED long leap_plain(long n)
{
	counts.plain++;
	counts.returns++;
	return n * 3 + 1;
}

/* Goes down n times; leaves from the bottom, in one step or by returns. */
PROBED long leap_deep(long n)
{
	long result;

	counts.deep++;
	if (n <= 0 && leaps_out)
		longjmp(out, 5);
	result = n <= 0 ? 0 : leap_deep(n - 1) + n;
	__asm__ volatile("" : "+r"(result));
	counts.returns++;
	return result;
}

PROBED long leap_handler(long n)
{
	counts.handler++;
	siglongjmp(out_of_handler, (int)n);
}

PROBED long leap_context(long n)
{
	counts.context++;
	CHECK(leap_plain(n) == n * 3 + 1);
	setcontext(&back);
	return 0;
}

PROBED long leap_thread(long n)
{
	counts.thread++;
	pthread_exit((void *)n);
}

PROBED long leap_canceled(long n)
{
	counts.canceled++;
	waiting = 1;
	for (;;)
		pause();
	return n;
}

static void on_usr1(int number_of_signal)
{
	leap_handler(9);
}

static volatile sig_atomic_t handled;

static void on_usr2(int number_of_signal)
{
	handled += (int)leap_plain(1) - 3;
}

static void by_longjmp(long i)
{
	int came = setjmp(out);

	if (!came) {
		leaps_out = i % 2;
		CHECK(leap_deep(i % 6) == (i % 6) * (i % 6 + 1) / 2);
	} else {
		CHECK(came == 5 && leaps_out);
	}
}

static void by_handler(long i)
{
	int came = sigsetjmp(out_of_handler, 1);

	if (!came)
		raise(SIGUSR1);
	CHECK(came == 9);
}

static void entry(void)
{
	leap_context(7);
}

static void by_context(long i)
{
	volatile bool was_there = false;

	CHECK(getcontext(&back) == 0);
	if (was_there)
		return;
	was_there = true;
	CHECK(getcontext(&there) == 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = NULL;
	makecontext(&there, entry, 0);
	swapcontext(&here, &there);
	CHECK(0);
}

static void *run_thread(void *arg)
{
	leap_thread((long)(uintptr_t)arg);
	return NULL;
}

static void *run_canceled(void *arg)
{
	leap_canceled(1);
	return NULL;
}

static void by_thread(long i)
{
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, run_thread, (void *)(i + 5)) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == (void *)(i + 5));
	if (i % 8)
		return;
	waiting = 0;
	CHECK(pthread_create(&thread, NULL, run_canceled, NULL) == 0);
	while (!waiting)
		usleep(50);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

int main(int argc, char **argv)
{
	bool waits = argc > 1 && !strcmp(argv[1], "-w");
	long n = argc > 1 + waits ? number(argv[1 + waits]) : 200;

	signal(SIGUSR1, on_usr1);
	signal(SIGUSR2, on_usr2);
	if (waits) {
		say("ready\n");
		wait_for_line();
	}
	for (long i = 0; i < n; i++) {
		by_longjmp(i);
		by_handler(i);
		by_context(i);
		by_thread(i);
		raise(SIGUSR2);
	}
	CHECK(handled == n);
	printf("{\"leap_deep\": %ld, \"leap_handler\": %ld, \"leap_context\": %ld, \"leap_thread\": %ld, "
	       "\"leap_canceled\": %ld, \"leap_plain\": %ld, "
	       "\"returns\": %ld}\n",
	       counts.deep, counts.handler, counts.context, counts.thread, counts.canceled, counts.plain,
	       counts.returns);
	fflush(stdout);
	return 0;
}
