/*
 * What it costs to turn markers on and off in the process, while other threads run through them.
 *
 *	toggle LIBRARY THREADS ROUNDS
 *
 * loads toggled.c's library, starts THREADS threads that call all its functions without a pause, and prints "ready
 * PID". After a byte on stdin it connects an empty probe to toggle_one and disconnects it, then does the same with
 * toggle_many, ROUNDS times. "toggled NAME ON_NS OFF_NS": medians, of all sites together. Then "done", and the end with
 * the next byte.
 */
#include <dlfcn.h>
#include <kymo/marker_probe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 1000
#define PAUSE_US 2000

typedef long many_function(int a, long b);

static many_function *const *table;
static unsigned int table_count;
static atomic_bool stopping;

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *runner_main(void *data)
{
	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		for (unsigned int i = 0; i < table_count; i++)
			table[i](7, 11);
	}
	return NULL;
}

static void empty_probe(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
}

static bool load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	const unsigned int *count = library ? dlsym(library, "many_count") : NULL;

	table = library ? dlsym(library, "many_table") : NULL;
	if (!table || !count) {
		fprintf(stderr, "%s: %s\n", path, library ? "no many_table" : dlerror());
		return false;
	}
	table_count = *count;
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

static bool measure(const char *name, int rounds)
{
	static uint64_t on[MAX_ROUNDS], off[MAX_ROUNDS];

	for (int i = 0; i < rounds; i++) {
		uint64_t begin = now_ns();
		int error = kymo_marker_set_probe(name, NULL, empty_probe, NULL, KYMO_MARKER_CALL);

		on[i] = now_ns() - begin;
		if (!error) {
			usleep(PAUSE_US);
			begin = now_ns();
			error = kymo_marker_disable_probe(name, empty_probe, NULL, KYMO_MARKER_CALL);
			off[i] = now_ns() - begin;
		}
		if (error) {
			fprintf(stderr, "%s: error %d\n", name, error);
			return false;
		}
		usleep(PAUSE_US);
	}
	printf("toggled %s %llu %llu\n", name, (unsigned long long)median(on, rounds),
	       (unsigned long long)median(off, rounds));
	return true;
}

int main(int argc, char **argv)
{
	int n_threads = argc == 4 ? atoi(argv[2]) : -1, rounds = argc == 4 ? atoi(argv[3]) : 0;
	pthread_t thread;
	char byte;

	if (n_threads < 0 || rounds < 1 || rounds > MAX_ROUNDS) {
		fprintf(stderr, "usage: %s LIBRARY THREADS ROUNDS\n", argv[0]);
		return 2;
	}
	if (!load(argv[1]))
		return 1;
	for (int i = 0; i < n_threads; i++) {
		if (pthread_create(&thread, NULL, runner_main, NULL)) {
			fprintf(stderr, "cannot create a thread\n");
			return 1;
		}
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	if (!measure("toggle_one", rounds) || !measure("toggle_many", rounds))
		return 1;
	printf("done\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) < 0)
		return 1;
	/* The others are within calls of functions that end; nothing of theirs needs to be waited for. */
	_exit(0);
}
