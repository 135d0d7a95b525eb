/* A library with markers, for ctor, reopener and dlopener: in its constructor, its destructor, and where it works.
 * Stands in for libctor.c. */
#include <kymo/marker.h>

#include "ctor.h"

static int sum;

PROBED int ctor_work(int n)
{
	MARK(lib_work, "n=%d text=%s", n, n % 2 ? "odd" : "even");
	return n * 3 + 1;
}

PROBED int ctor_sum(void)
{
	return sum;
}

__attribute__((constructor)) static void before_main(void)
{
	for (int i = 0; i < CTOR_CALLS_BEFORE; i++) {
		MARK(lib_comes, "i=%d", i);
		sum += ctor_work(i);
	}
}

__attribute__((destructor)) static void after_main(void)
{
	for (int i = 0; i < CTOR_CALLS_AFTER; i++)
		CHECK(ctor_work(i) == i * 3 + 1);
	MARK(lib_goes, MARK_NOARGS);
}
