/*
 * flight N AT [MS]
 *
 * Calls step(n) and serve(n) for n from 0 to N - 1, with a pause now and then. The call serve(n) takes MS (1500)
 * milliseconds where n + 1 is a multiple of AT, and no time otherwise.
 */
#include <time.h>

#include "target.h"

enum { PAUSE_EACH = 200, PAUSE_NS = 100000 };

static long at, ms = 1500;

static void pause_ns(long ns)
{
	const struct timespec time = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&time, NULL);
}

PROBED long step(long n);
PROBED long serve(long n);

long step(long n)
{
	return n + 1;
}

long serve(long n)
{
	if ((n + 1) % at == 0)
		pause_ns(ms * 1000000);
	return n + 2;
}

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 0;
	char line[64];

	at = argc > 2 ? atol(argv[2]) : 1;
	ms = argc > 3 ? atol(argv[3]) : ms;
	CHECK(at > 0);
	for (long i = 0; i < n; i++) {
		CHECK(step(i) == i + 1);
		CHECK(serve(i) == i + 2);
		if (i % PAUSE_EACH == 0)
			pause_ns(PAUSE_NS);
	}
	snprintf(line, sizeof(line), "{\"steps\": %ld}\n", n);
	say(line);
	return 0;
}
