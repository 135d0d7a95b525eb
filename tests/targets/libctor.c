/* A library that works before main() and after it: its constructor calls ctor_work() 100 times, its destructor 10
 * times. */
#include "ctor.h"

static int sum;

#ifdef REBUILT /* another version of it: all that follows is elsewhere in the file */
int ctor_more(int n);

PROBED int ctor_more(int n)
{
	return n * 5 + 7;
}
#endif

PROBED int ctor_work(int n)
{
	return n * 3 + 1;
}

PROBED int ctor_sum(void)
{
	return sum;
}

__attribute__((constructor)) static void before_main(void)
{
	for (int i = 0; i < CTOR_CALLS_BEFORE; i++)
		sum += ctor_work(i);
}

__attribute__((destructor)) static void after_main(void)
{
	for (int i = 0; i < CTOR_CALLS_AFTER; i++)
		CHECK(ctor_work(i) == i * 3 + 1);
}
