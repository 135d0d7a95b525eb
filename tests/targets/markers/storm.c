/*
 * storm SECONDS [THREADS[:PAUSE] [OBJECT...]]: threads run through 1,000 sites of one marker, and 1,000 more of each
 * object, which is turned on and off as fast as it goes. Signals come meanwhile, whose handler passes markers, too.
 * Every argument of every call is checked, and what the threads hold in registers across the sites. Prints one line of
 * JSON:
 *
 *	toggles	sites that were turned on or off
 *	calls	of the probe
 *	wrong	arguments that were not what was given
 *	late	calls after kymo_marker_disable_probe() had returned
 *	broken	sums that threads had in registers and that were not right after the sites
 *	failed	errors of the library
 */
#include <kymo/marker_probe.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "storm.h"

#define MAX_THREADS 64
#define MAX_OBJECTS 64

static atomic_bool stop;
static atomic_ulong calls, wrong, late, broken, failed, handled;

/* What a connection is for; the probe may run only while it is alive. */
struct connection {
	atomic_bool is_alive;
};

/* Of the program, and of objects. */
static storm_part *const *parts[1 + MAX_OBJECTS] = { storm_parts };
static unsigned int n_objects = 1;

static void probe(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	struct connection *connection = data;
	int site = va_arg(arguments, int);
	unsigned long count = va_arg(arguments, unsigned long);
	double half = va_arg(arguments, double);
	const char *word = va_arg(arguments, const char *);
	uint64_t mixed = va_arg(arguments, uint64_t);

	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	if (!atomic_load(&connection->is_alive))
		atomic_fetch_add(&late, 1);
	if (site < 0 || site >= N_SITES || half != (double)count / 2 || strcmp(word, words[count % 4]) ||
	    mixed != mix(count + (uint64_t)site) || strcmp(marker->name, "storm"))
		atomic_fetch_add(&wrong, 1);
}

static struct sums expected(int part, struct sums sums)
{
	for (int i = 100 * part; i < 100 * part + 100; i++) {
		sums.sum += mix((uint64_t)i);
		sums.real += i;
		sums.other ^= sums.sum;
	}
	return sums;
}

static void run_part(int part, unsigned long count)
{
	storm_part *run_it = parts[count / N_PARTS % n_objects][part];
	struct sums begin = { mix(count), ~count, (double)count };
	struct sums got = run_it(count, begin), want = expected(part, begin);

	if (got.sum != want.sum || got.other != want.other || got.real != want.real)
		atomic_fetch_add(&broken, 1);
}

/* ---- threads and signals --------------------------------------------------------------------- */

static void handle(int number)
{
	run_part(number % 10, atomic_fetch_add(&handled, 1));
}

static unsigned int
	pause_us; /* of a thread that has passed 1,000 sites: so that cores are left for the threads that toggle */

static void *run(void *data)
{
	unsigned long count = (unsigned long)(uintptr_t)data << 40;

	for (; !atomic_load_explicit(&stop, memory_order_relaxed); count++) {
		run_part((int)(count % N_PARTS), count);
		if (pause_us && count % N_PARTS == 0)
			usleep(pause_us);
	}
	return NULL;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* One connection after the other, each of which is freed at once. The signals hit any thread. */
static unsigned long toggle_for(double seconds, pthread_t *threads, int n_threads)
{
	double end = now() + seconds;
	unsigned long n = 0;

	while (now() < end) {
		struct connection *connection = malloc(sizeof(*connection));
		atomic_init(&connection->is_alive, true);
		if (kymo_marker_set_probe("storm", NULL, probe, connection, KYMO_MARKER_CALL))
			atomic_fetch_add(&failed, 1);
		pthread_kill(threads[n % (unsigned int)n_threads], SIGUSR1);
		for (unsigned long before = atomic_load(&calls); n % 8 == 0 && atomic_load(&calls) == before;)
			sched_yield(); /* else it may be off before a thread comes by */
		if (kymo_marker_disable_probe("storm", probe, connection, KYMO_MARKER_CALL))
			atomic_fetch_add(&failed, 1);
		atomic_store(&connection->is_alive, false);
		memset(connection, 0, sizeof(*connection));
		free(connection);
		if (n % 16 == 0)
			raise(SIGUSR2);
		n++;
	}
	return 2 * n * N_SITES * n_objects;
}

static void open_object(const char *path)
{
#ifndef STATIC
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (object && (parts[n_objects++] = dlsym(object, "storm_parts")))
		return;
	fprintf(stderr, "%s\n", dlerror());
#endif
	exit(2);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int n_threads = argc > 2 ? atoi(argv[2]) : 8;
	pthread_t threads[MAX_THREADS];

	if (argc > 2 && strchr(argv[2], ':'))
		pause_us = (unsigned int)atoi(strchr(argv[2], ':') + 1);
	if (n_threads < 1 || n_threads > MAX_THREADS || argc > 3 + MAX_OBJECTS)
		return 2;
	for (int i = 3; i < argc; i++)
		open_object(argv[i]);
	signal(SIGUSR1, handle);
	signal(SIGUSR2, handle);
	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i + 1));
	double begin = now();
	unsigned long toggles = toggle_for(seconds, threads, n_threads);
	double took = now() - begin;
	atomic_store(&stop, true);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("{\"toggles\": %lu, \"seconds\": %.3f, \"calls\": %lu, \"wrong\": %lu, \"late\": %lu, \"broken\": %lu, "
	       "\"failed\": %lu, \"handled\": %lu}\n",
	       toggles, took, calls, wrong, late, broken, failed, handled);
	return 0;
}
