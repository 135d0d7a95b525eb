/*
 * selfcheck [-t THREADS] [-s SECONDS] [-n ROUNDS] [-p PAUSE_US]
 *
 * THREADS (16) threads call the functions of work.c and check each result, take signals, sleep, pass bytes through
 * pipes, and start threads that soon end. Runs until SIGTERM or SIGINT, for SECONDS, or for ROUNDS of each thread; then
 * prints how often each function was called. PAUSE_US (100) microseconds of sleep come after each round; 0 for none.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "target.h"
#include "work.h"

#define MAX_THREADS 256

static struct {
	_Atomic uint64_t a, b, c, redzone, deep, signal, threads;
} counts;

static atomic_bool stop;
static long rounds, pause_us = 100;

static void on_usr1(int number_of_signal)
{
	int saved = errno;

	CHECK(work_signal(number_of_signal) == (number_of_signal ^ 0x5a5a));
	counts.signal++;
	errno = saved;
}

/* Over signals: what is left is slept too. */
static void sleep_us(long us)
{
	struct timespec left = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&left, &left) < 0)
		CHECK(errno == EINTR);
}

/* A byte there and back through a pipe: two system calls that a signal may interrupt. */
static void pass_byte(int fds[2], unsigned char byte)
{
	unsigned char got = (unsigned char)~byte;
	ssize_t n;

	do
		n = write(fds[1], &byte, 1);
	while (n < 0 && errno == EINTR);
	CHECK(n == 1);
	do
		n = read(fds[0], &got, 1);
	while (n < 0 && errno == EINTR);
	CHECK(n == 1 && got == byte);
}

static void call_all(unsigned int i)
{
	long x = (long)i * 0x123456789l;

	CHECK(work_a((int)i, x) == expect_a((int)i, x));
	counts.a++;
	CHECK(work_b(x, (int)(i % 13)) == expect_b(x, (int)(i % 13)));
	counts.b++;
	CHECK(work_c(i, 2.0) == i * 3.0 - 1.0);
	counts.c++;
	CHECK(work_redzone(x) == 3 * x + 10);
	counts.redzone++;
	CHECK(work_deep(4) == 10);
	counts.deep += 5;
}

static void *short_life(void *arg)
{
	unsigned int i = (unsigned int)(uintptr_t)arg;

	CHECK(work_a((int)i, 1) == expect_a((int)i, 1));
	counts.a++;
	counts.threads++;
	return arg;
}

static void start_and_join(unsigned int i)
{
	void *result = NULL;
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)i) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == (void *)(uintptr_t)i);
}

static void *worker(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	int fds[2];

	CHECK(pipe(fds) == 0);
	for (unsigned int i = seed; !stop && (!rounds || i - seed < (unsigned long)rounds); i++) {
		for (unsigned int k = 0; k < 8; k++)
			call_all(i * 8 + k);
		if (i % 16 == 0)
			pass_byte(fds, (unsigned char)i);
		if (i % 256 == 7)
			start_and_join(i);
		if (pause_us)
			sleep_us(pause_us);
	}
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

/* Send SIGUSR1 around until it is time to stop. Threads that ended by themselves are joined later, so the ids stay
 * good. */
static void conduct(pthread_t *threads, int n, long seconds)
{
	struct timespec tick = { 0, 2000000 }, start, now;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (unsigned int i = 0;; i++) {
		if (sigtimedwait(&set, NULL, &tick) > 0)
			return;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (seconds && now.tv_sec - start.tv_sec >= seconds)
			return;
		pthread_kill(threads[i % (unsigned int)n], SIGUSR1);
	}
}

static void print_counts(void)
{
	printf("{\"work_a\": %lu, \"work_b\": %lu, \"work_c\": %lu, \"work_redzone\": %lu, \"work_deep\": %lu, "
	       "\"work_signal\": %lu, \"threads\": %lu}\n",
	       counts.a, counts.b, counts.c, counts.redzone, counts.deep, counts.signal, counts.threads);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_usr1 }; /* no SA_RESTART: EINTR is part of the game */
	static pthread_t threads[MAX_THREADS];
	long n = 16, seconds = 0;
	sigset_t set;
	int option;

	while ((option = getopt(argc, argv, "t:s:n:p:")) != -1) {
		switch (option) {
		case 't':
			n = number(optarg);
			break;
		case 's':
			seconds = number(optarg);
			break;
		case 'n':
			rounds = number(optarg);
			break;
		case 'p':
			pause_us = number(optarg);
			break;
		default:
			return 2;
		}
	}
	if (n < 1 || n > MAX_THREADS)
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, worker, (void *)(i * 1000)) == 0);
	say("ready\n");
	if (!rounds)
		conduct(threads, (int)n, seconds);
	stop = rounds == 0;
	for (long i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	print_counts();
	return 0;
}
