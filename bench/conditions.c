/*
 * conditions THREADS CALLS FILE: ns of a call of hot(), as a program sees it whose THREADS threads make CALLS calls in
 * all. Writes them to FILE, from when all threads are there: on the clock, and of the processor time of all threads. A
 * debugger has a breakpoint on hot() whose condition is false, or a dprintf.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t barrier;
static long calls;

__attribute__((noipa)) long hot(long n)
{
	return n * 3 + 1;
}

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *work(void *data)
{
	double *used = data, begin;
	long sum = 0;

	pthread_barrier_wait(&barrier);
	begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (long n = 0; n < calls; n++)
		sum += hot(n);
	*used = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	pthread_barrier_wait(&barrier);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 3 ? (unsigned int)atoi(argv[1]) : 0;
	static double used[128];
	double begin, all_used = 0;
	FILE *file;

	if (!n || n > sizeof(used) / sizeof(used[0]))
		return 2;
	calls = atol(argv[2]) / n;
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (unsigned int i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &used[i]))
			return 1;
	}
	pthread_barrier_wait(&barrier);
	begin = now_ns(CLOCK_MONOTONIC);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < n; i++)
		all_used += used[i];
	file = fopen(argv[3], "w");
	if (!file ||
	    fprintf(file, "%.3f %.3f\n", (now_ns(CLOCK_MONOTONIC) - begin) / ((double)calls * n),
		    all_used / ((double)calls * n)) < 0 ||
	    fclose(file))
		return 1;
	return 0;
}
