/* A program with SDT probes, as test_list.py lists it, built in several ways for operands of many kinds. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include <stdio.h>

__attribute__((section(".probes"))) unsigned short probes_guarded_semaphore;
__attribute__((section(".probes"))) unsigned short probes_sizes_semaphore;
__attribute__((section(".probes"))) unsigned short probes_places_semaphore;
__attribute__((section(".probes"))) unsigned short probes_plain_semaphore;
__attribute__((section(".probes"))) unsigned short probes_floats_semaphore;

static volatile long counter;
static char letters[64];
static struct {
	int a;
	short b;
} pair;
static double ratio;

__attribute__((noinline)) static int sizes(signed char a, unsigned char b, short c, unsigned short d, int e,
					   unsigned int f, long g, unsigned long h)
{
	STAP_PROBE8(probes, sizes, a, b, c, d, e, f, g, h);
	return a + b;
}

__attribute__((noinline)) static int places(int i, const int *numbers, char *text)
{
	volatile int local = i;
	char array[40];

	__asm__ volatile("" : "+m"(array));
	STAP_PROBE8(probes, places, local, numbers[i], text, array[i], letters[i & 31], counter, pair.b, -5);
	return local;
}

int main(int argc, char **argv)
{
	int numbers[8] = { 0 }, sum;

	STAP_PROBE(probes, plain);
	sum = sizes(1, 2, 3, 4, 5, 6, argc, 8) + places(argc & 7, numbers, argv[0]);
	if (probes_guarded_semaphore)
		STAP_PROBE1(probes, guarded, sum);
	STAP_PROBE2(probes, floats, ratio, (float)sum);
	printf("%d %d\n", sum, letters[0] + pair.a);
	return 0;
}
