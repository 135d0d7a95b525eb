/*
 * Threads pass a marker while probes are connected to it and taken away, for libkymo-marker on architectures for which
 * nothing else here is built: tests/e2e/markers/test_architectures.py compiles the library beside it. Usage:
 * marker_library TURNS
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			printf("line %d: not so: %s\n", __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static _Atomic int must_end;
static _Atomic long n_evaluated, n_passed, n_called;
static char allowed; /* what probes get as data; NULL would be one that is called too late */
static char *_Atomic data;

static int evaluate(int x)
{
	n_evaluated++;
	return x;
}

static void *pass(void *arg)
{
	(void)arg;
	for (int i = 1; !must_end; i++) {
		MARK(turn, "i=%d twice=%lld half=%f name=%s c=%c p=%p", evaluate(i), i * 2ll, i / 2.0, "name", 'c',
		     (void *)(uintptr_t)i);
		n_passed++;
	}
	return NULL;
}

static void probe(const struct kymo_marker_info *marker, void *given, va_list arguments)
{
	int i = va_arg(arguments, int);
	long long twice = va_arg(arguments, long long);
	double half = va_arg(arguments, double);
	const char *name = va_arg(arguments, const char *);
	int c = va_arg(arguments, int);
	void *p = va_arg(arguments, void *);

	CHECK(given == &allowed && data == &allowed);
	CHECK(!strcmp(marker->name, "turn") && !strcmp(marker->format, "i=%d twice=%lld half=%f name=%s c=%c p=%p"));
	CHECK(twice == i * 2ll && half == i / 2.0 && !strcmp(name, "name") && c == 'c' && p == (void *)(uintptr_t)i);
	n_called++;
}

static int count(const struct kymo_marker_info *marker, void *counter)
{
	CHECK(marker->n_sites > 0 && !strcmp(marker->provider, "kymo") && marker->line);
	*(int *)counter += 1;
	return 0;
}

int main(int argc, char **argv)
{
	int n_turns = argc > 1 ? atoi(argv[1]) : 100, n_markers = 0;
	pthread_t threads[2];

	CHECK(!kymo_marker_for_each(count, &n_markers) && n_markers == 1);
	CHECK(kymo_marker_set_probe("other", NULL, probe, &allowed, KYMO_MARKER_CALL) == -ENOENT);
	CHECK(kymo_marker_set_probe("turn", "%d", probe, &allowed, KYMO_MARKER_CALL) == -EINVAL);
	CHECK(kymo_marker_set_probe("turn", NULL, NULL, &allowed, KYMO_MARKER_INLINE) < 0 || sizeof(void *) == 8);
	for (size_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, pass, NULL));
	while (n_passed < 1000)
		sched_yield();
	CHECK(!n_evaluated);
	for (int turn = 0; turn < n_turns; turn++) {
		long before = n_called;

		data = &allowed;
		CHECK(!kymo_marker_set_probe("turn", NULL, probe, &allowed, KYMO_MARKER_CALL));
		CHECK(kymo_marker_set_probe("turn", NULL, probe, &allowed, KYMO_MARKER_CALL) == -EBUSY);
		while (n_called < before + 10)
			sched_yield();
		CHECK(!kymo_marker_disable_probe("turn", probe, &allowed, KYMO_MARKER_CALL));
		data = NULL; /* no thread is in the probe now */
		CHECK(kymo_marker_disable_probe("turn", probe, &allowed, KYMO_MARKER_CALL) == -ENOENT);
	}
	must_end = 1;
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(n_called >= n_turns * 10 && n_evaluated >= n_called && n_evaluated < n_passed);
	printf("%d turns\n", n_turns);
	return 0;
}
