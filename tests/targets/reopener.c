/*
 * reopener LIBRARY [N]
 *
 * For each line on stdin: closes LIBRARY (libctor.so) if it is open, and opens it N (1) times, with a call of its ctor_work() and a close after each but the last. Prints "open",
 * where that function is, the longest time that an open took, in microseconds, and how often the function was called so far. For each "c" it only closes it, and prints "closed". Closes
 * it when stdin ends.
 */
#include <dlfcn.h>
#include <time.h>

#include "ctor.h"

static void *library;
static long calls, longest_us;

static void *open_library(const char *path)
{
	struct timespec begin, end;
	int (*work)(int);
	long us;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	library = dlopen(path, RTLD_NOW);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
	longest_us = us > longest_us ? us : longest_us;
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
		longest_us = 0;
		for (long i = 0; i < n; i++) {
			close_library();
			work = open_library(argv[1]);
		}
		printf("open %p %ld %ld\n", work, longest_us, calls);
		fflush(stdout);
	}
	close_library();
	printf("{\"ctor_work\": %ld}\n", calls);
	return 0;
}
