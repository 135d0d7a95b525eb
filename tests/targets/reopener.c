/*
 * reopener LIBRARY [N]
 *
 * For each line on stdin: closes LIBRARY (libctor.so) if it is open, and opens it N (1) times. A call of its
 * ctor_work() and a close follow each but the last. Prints "open", the function's address, the longest time and the
 * longest processor time of an open in microseconds, and the number of calls so far. For each "c" it only closes it,
 * and prints "closed". Closes it when stdin ends.
 */
#include <dlfcn.h>
#include <time.h>

#include "ctor.h"

static void *library;
static long calls, longest_us, busiest_us;

static long since_us(clockid_t clock, const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (now.tv_sec - begin->tv_sec) * 1000000 + (now.tv_nsec - begin->tv_nsec) / 1000;
}

static void *open_library(const char *path)
{
	struct timespec begin, busy;
	int (*work)(int);
	long us, busy_us;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy);
	library = dlopen(path, RTLD_NOW);
	busy_us = since_us(CLOCK_THREAD_CPUTIME_ID, &busy);
	us = since_us(CLOCK_MONOTONIC, &begin);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	longest_us = us > longest_us ? us : longest_us;
	busiest_us = busy_us > busiest_us ? busy_us : busiest_us;
	*(void **)&work = dlsym(library, "ctor_work");
	CHECK(work && work(5) == 16);
	calls += CTOR_CALLS_BEFORE + 1;
	return (void *)(uintptr_t)work;
}

static void close_library(void)
{
	if (!library)
		return;
	CHECK(dlclose(library) == 0);
	library = NULL;
	calls += CTOR_CALLS_AFTER;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? number(argv[2]) : 1;
	char c;

	if (argc < 2)
		return 2;
	say("ready\n");
	while (read(STDIN_FILENO, &c, 1) == 1) {
		void *work = NULL;

		if (c == 'c') {
			close_library();
			say("closed\n");
			continue;
		}
		longest_us = busiest_us = 0;
		for (long i = 0; i < n; i++) {
			close_library();
			work = open_library(argv[1]);
		}
		printf("open %p %ld %ld %ld\n", work, longest_us, busiest_us, calls);
		fflush(stdout);
	}
	close_library();
	printf("{\"ctor_work\": %ld}\n", calls);
	return 0;
}
