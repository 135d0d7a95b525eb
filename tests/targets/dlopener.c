/*
 * dlopener LIBRARY [N]
 *
 * Opens LIBRARY (libctor.so) N (3) times, calls its ctor_work() once, and closes it again; with N = 0 until SIGTERM,
 * after it has said "ready". Prints how often that was called.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>

#include "ctor.h"

static volatile sig_atomic_t ended;

static void on_sigterm(int number_of_signal)
{
	ended = 1;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? number(argv[2]) : 3, i;
	bool endless = n == 0;

	if (argc < 2)
		return 2;
	signal(SIGTERM, on_sigterm);
	if (endless)
		say("ready\n");
	for (i = 0; endless ? !ended : i < n; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		int (*work)(int);

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **)&work = dlsym(library, "ctor_work");
		CHECK(work && work(5) == 16);
		CHECK(dlclose(library) == 0);
	}
	printf("{\"ctor_work\": %ld}\n", i * (1 + CTOR_CALLS_BEFORE + CTOR_CALLS_AFTER));
	return 0;
}
