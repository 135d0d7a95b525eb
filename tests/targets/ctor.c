/*
 * ctor [N]
 *
 * Linked with libctor.so, whose constructor and destructor call ctor_work(). Calls it N (20) times itself and prints
 * how often it is called in all, from before main() to after it.
 */
#include "ctor.h"

int main(int argc, char **argv)
{
	long n = argc > 1 ? number(argv[1]) : 20;

	CHECK(ctor_sum() == CTOR_SUM);
	for (long i = 0; i < n; i++)
		CHECK(ctor_work((int)i) == (int)i * 3 + 1);
	printf("{\"ctor_work\": %ld}\n", n + CTOR_CALLS_BEFORE + CTOR_CALLS_AFTER);
	return 0;
}
