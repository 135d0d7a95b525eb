/* A program with markers of kymo's, as test_list.py lists it. It is never run. */
#include <kymo/marker.h>

#include <stdio.h>

__attribute__((always_inline)) static inline void step(int i, const char *what)
{
	MARK(step, "i=%d what=%s", i, what);
}

int main(int argc, char **argv)
{
	unsigned int flags = (unsigned int)argc;
	double ratio = argc / 3.0;
	void *where = argv;

	MARK(begin, MARK_NOARGS);
	step(argc, argv[0]);
	step(argc + 1, "second");
	step(argc + 2, "third");
	MARK(settings, "flags=0x%x %ld ratio=%f where=%p", flags, (long)argc, ratio, where);
	MARK(step, "%d", argc);
	return 0;
}
