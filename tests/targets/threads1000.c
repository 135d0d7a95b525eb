/*
 * threads1000 [-t THREADS] [-w WORKERS]
 *
 * THREADS (1000) threads, of which WORKERS (4) call work_a() and check it, and the others sleep in one of four ways: in
 * a condition variable, a read from a pipe, poll, and nanosleep. Until SIGTERM; then all end and the number of calls is
 * printed.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "target.h"
#include "work.h"

#define MAX_THREADS 20000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static atomic_bool stop;
static _Atomic long calls;
static long workers = 4;
static int ending[2]; /* a pipe; its write end is closed to end the sleepers */

static void work(void)
{
	struct timespec pause = { 0, 50000 };

	for (long i = 0; !stop; i++) {
		CHECK(work_a((int)i, i) == expect_a((int)i, i));
		calls++;
		if (i % 64 == 0)
			nanosleep(&pause, NULL);
	}
}

static void sleep_in_cond(void)
{
	pthread_mutex_lock(&mutex);
	while (!stop)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void sleep_in_read(void)
{
	char c;
	ssize_t n;

	do
		n = read(ending[0], &c, 1);
	while (n < 0 && errno == EINTR);
	CHECK(n == 0);
}

static void sleep_in_poll(void)
{
	struct pollfd pfd = { .fd = ending[0], .events = POLLIN };

	while (!stop) {
		int n = poll(&pfd, 1, -1);

		CHECK(n == 1 || (n < 0 && errno == EINTR));
	}
}

static void sleep_in_nanosleep(void)
{
	struct timespec pause = { 0, 200000000 };

	while (!stop)
		CHECK(nanosleep(&pause, NULL) == 0 || errno == EINTR);
}

static void *run(void *arg)
{
	static void (*const ways[])(void) = { sleep_in_cond, sleep_in_read, sleep_in_poll, sleep_in_nanosleep };
	long i = (long)(intptr_t)arg;

	pthread_barrier_wait(&barrier);
	if (i < workers)
		work();
	else
		ways[i % 4]();
	return NULL;
}

static void wait_for_term(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigwait(&set, &got);
}

static void end_all(pthread_t *threads, long n)
{
	pthread_mutex_lock(&mutex);
	stop = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	close(ending[1]);
	for (long i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
	static pthread_t threads[MAX_THREADS];
	pthread_attr_t attributes;
	long n = 1000;
	sigset_t set;
	int option;

	while ((option = getopt(argc, argv, "t:w:")) != -1) {
		switch (option) {
		case 't':
			n = number(optarg);
			break;
		case 'w':
			workers = number(optarg);
			break;
		default:
			return 2;
		}
	}
	if (n < 1 || n > MAX_THREADS || pipe(ending) < 0)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	pthread_barrier_init(&barrier, NULL, (unsigned int)n + 1);
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], &attributes, run, (void *)(intptr_t)i) == 0);
	pthread_barrier_wait(&barrier);
	say("ready\n");
	wait_for_term();
	end_all(threads, n);
	printf("{\"work_a\": %ld, \"threads\": %ld}\n", calls, n);
	return 0;
}
