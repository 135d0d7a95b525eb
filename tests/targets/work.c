#include "work.h"

#include "target.h"

PROBED int work_a(int n, long x)
{
	return (int)((unsigned int)n * 2654435761u ^ (unsigned int)x ^ (unsigned int)(x >> 32));
}

PROBED long work_b(long x, int rounds)
{
	unsigned long s = (unsigned long)x;

	for (int i = 0; i < rounds; i++) {
		__asm__("rol $7, %0" : "+r"(s) : : "cc");
		s += (unsigned long)i;
	}
	return (long)s;
}

PROBED double work_c(double x, double y)
{
	return x * 3.0 - y / 2.0;
}

PROBED long work_redzone(long x)
{
	volatile long below[8];

	for (int i = 0; i < 8; i++)
		below[i] = x + i;
	return below[0] + below[3] + below[7];
}

PROBED long work_deep(long n)
{
	long rest = n <= 0 ? 0 : work_deep(n - 1);

	__asm__ volatile("" : "+r"(rest)); /* else compilers make a loop of it */
	return n <= 0 ? 0 : n + rest;
}

PROBED long work_six(long a, long b, long c, long d, long e, long f)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}

PROBED long work_eight(int a, long b, int c, long d, int e, long f, int g, long h)
{
	return a + b + c + d + e + f + 10L * g + 100L * h;
}

PROBED int work_signal(int n)
{
	return n ^ 0x5a5a;
}
