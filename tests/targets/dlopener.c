/*
 * dlopener LIBRARY [N]
 *
 * Opens LIBRARY (libctor.so) N (3) times, calls its ctor_work() once, and closes it again. Prints how often that was called.
 */
#include <dlfcn.h>

#include "ctor.h"

int main(int argc, char **argv)
{
	long n = argc > 2 ? number(argv[2]) : 3;

	if (argc < 2)
		return 2;
	for (long i = 0; i < n; i++) {
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
	printf("{\"ctor_work\": %ld}\n", n * (1 + CTOR_CALLS_BEFORE + CTOR_CALLS_AFTER));
	return 0;
}
