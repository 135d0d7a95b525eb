/*
 * Small functions of different shape whose results their callers can predict. Each expect_…() is the same value reached
 * by other means; the compiler sees only one of the two at a time.
 */
#ifndef KYMO_TESTS_WORK_H
#define KYMO_TESTS_WORK_H

int work_a(int n, long x);         /* straight line, starts with a long instruction */
long work_b(long x, int rounds);   /* a loop with pushes, flags alive from one instruction to the next */
double work_c(double x, double y); /* arguments and result in vector registers */
long work_redzone(long x);         /* a leaf that lives below its stack pointer */
long work_deep(long n);            /* recursion: n + (n-1) + … + 0 */
long work_six(long a, long b, long c, long d, long e, long f);
long work_eight(int a, long b, int c, long d, int e, long f, int g, long h); /* two on the stack */
int work_signal(int n);                                                      /* called from signal handlers */

static inline int expect_a(int n, long x)
{
	return (int)((unsigned int)n * 2654435761u ^ (unsigned int)x ^ (unsigned int)(x >> 32));
}

static inline long expect_b(long x, int rounds)
{
	unsigned long s = (unsigned long)x;

	for (int i = 0; i < rounds; i++)
		s = (s << 7 | s >> 57) + (unsigned long)i;
	return (long)s;
}

#endif
