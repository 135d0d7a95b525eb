/*
 * conditions THREADS CALLS FILE: ns of a call of hot(), as a program sees it whose THREADS threads make CALLS calls in
 * all. Writes them to FILE, on the clock, from when all threads are there. A debugger has a breakpoint on hot() whose
 * condition is false.
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

static void *work(void *data)
{
	long sum = 0;

	pthread_barrier_wait(&barrier);
	for (long n = 0; n < calls; n++)
		sum += hot(n);
	pthread_barrier_wait(&barrier);
	return (void *)sum;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 3 ? (unsigned int)atoi(argv[1]) : 0;
	double begin;
	FILE *file;

	if (!n)
		return 2;
	calls = atol(argv[2]) / n;
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (unsigned int i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
	}
	pthread_barrier_wait(&barrier);
	begin = now_ns();
	pthread_barrier_wait(&barrier);
	file = fopen(argv[3], "w");
	if (!file || fprintf(file, "%.3f\n", (now_ns() - begin) / ((double)calls * n)) < 0 || fclose(file))
		return 1;
	return 0;
}
