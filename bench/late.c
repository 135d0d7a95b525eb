/* late LIBRARY: how many milliseconds it takes to load it. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	const double begin = now_ms();
	const void *library = dlopen(argv[argc - 1], RTLD_NOW);

	printf("%.3f\n", now_ms() - begin);
	return !library;
}
