/* Calls a function about a million times a second for so many seconds: a thousand calls, then a pause. Says how many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS 1000
#define ROUND_NS 1000000

__attribute__((noinline, noclone)) int hit(int n, long m)
{
	__asm__ volatile("" : "+r"(n), "+r"(m));
	return n + (int)m;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	const long long begin = now_ns(), end = begin + atoi(argv[1]) * 1000000000LL;
	long long next = begin;
	long n = 0;

	while (next < end) {
		struct timespec until;

		for (int i = 0; i < CALLS; i++)
			hit(i & 15, n++);
		next += ROUND_NS;
		until = (struct timespec){ next / 1000000000, next % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	printf("%ld\n", n);
	return 0;
}
