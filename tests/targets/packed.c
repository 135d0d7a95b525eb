/*
 * packed [-t THREADS] [-p MICROSECONDS]
 *
 * THREADS (2) threads call the functions of packed.S, which have no room between them. They pause for MICROSECONDS
 * (100) after each round, until SIGTERM; each result is checked. A line on stdin, "count N", makes each function be
 * called N times more by the first thread, and is answered by "counted"; the other threads rest meanwhile.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "target.h"

#define N_FUNCTIONS 12
#define MOST_THREADS 64

typedef int function(int);

function add_1, add_2, add_3, add_4, add_5, add_6, add_7, add_8, add_9, add_10, add_11, add_12, after_last;

static function *const functions[N_FUNCTIONS] = { add_1, add_2, add_3, add_4,  add_5,  add_6,
						  add_7, add_8, add_9, add_10, add_11, add_12 };
static atomic_bool stop, rest;
static atomic_ulong rounds;
static atomic_int resting;
static long pause_us = 100, n_threads = 2;

static void call_all(int i)
{
	for (int k = 0; k < N_FUNCTIONS; k++)
		CHECK(functions[k](i) == i + k + 1);
	CHECK(after_last(i) == i);
}

static void nap(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

static void *worker(void *arg)
{
	for (int i = 0; !stop; i++) {
		if (rest) {
			resting++;
			while (rest && !stop)
				nap(1000);
			resting--;
		}
		call_all(i);
		rounds++;
		if (pause_us)
			nap(pause_us);
	}
	return arg;
}

static void count(int n)
{
	rest = true;
	while (resting < n_threads)
		nap(100);
	for (int i = 0; i < n; i++)
		call_all(i);
	say("counted\n");
	rest = false;
	while (resting)
		nap(100);
}

static void on_term(int number)
{
	stop = true;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_term };
	pthread_t threads[MOST_THREADS];
	char line[64];

	for (; argc > 2; argv += 2, argc -= 2)
		*(!strcmp(argv[1], "-t") ? &n_threads : &pause_us) = number(argv[2]);
	if (n_threads < 1 || n_threads > MOST_THREADS)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	for (long i = 0; i < n_threads; i++)
		CHECK(pthread_create(&threads[i], NULL, worker, NULL) == 0);
	say("ready\n");
	while (!stop) {
		ssize_t size = read(STDIN_FILENO, line, sizeof(line) - 1);

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			break;
		line[size] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "count ", 6))
			count((int)number(line + 6));
	}
	while (!stop)
		nap(10000);
	for (long i = 0; i < n_threads; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("{\"rounds\": %lu}\n", (unsigned long)rounds);
	return 0;
}
