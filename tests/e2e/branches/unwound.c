/* Ways out of calls in C, in clones: leaps out of qsort, handlers of cleanup, results that an instruction leaves. */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static jmp_buf back;
static int compared, cleaned;

static int compare(const void *a, const void *b)
{
	if (++compared % 20 == 0)
		longjmp(back, compared);
	return *(const int *)a - *(const int *)b;
}

static NOINLINE int sort(int seed)
{
	int numbers[50];

	for (int i = 0; i < 50; i++)
		numbers[i] = i * seed % 101;
	qsort(numbers, 50, sizeof(numbers[0]), compare);
	return numbers[20];
}

static NOINLINE int out_of_qsort(void)
{
	volatile int sum = 0;

	for (volatile int i = 1; i < 50; i++) {
		int got = setjmp(back);

		sum += got ? got : sort(7919 + i);
	}
	return sum;
}

static void clean(void *data)
{
	cleaned += *(int *)data;
}

static NOINLINE void leave(int n)
{
	pthread_cleanup_push(clean, &n);
	if (!n)
		pthread_exit(NULL);
	leave(n - 1);
	pthread_cleanup_pop(0);
}

static void *exits(void *data)
{
	leave(5);
	return NULL;
}

static volatile int is_waiting;

static void *waits(void *data)
{
	int one = 1;

	pthread_cleanup_push(clean, &one);
	for (;;) {
		is_waiting = 1;
		usleep(1000);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static NOINLINE void threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exits, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, waits, NULL);
	while (!is_waiting)
		usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
}

#if defined(__x86_64__)
/* bsr of 0 leaves the register alone; so does rdsspq without a shadow stack. */
static NOINLINE long highest(uint64_t bits)
{
	long found = 64, shadow = 0;

	__asm__ volatile("bsr %1,%0" : "+r"(found) : "r"(bits));
	__asm__ volatile("rdsspq %0" : "+r"(shadow));
	return shadow ? -1 : found;
}
#else
static NOINLINE long highest(uint64_t bits)
{
	return bits ? 63 - __builtin_clzl(bits) : 64;
}
#endif

static NOINLINE long all_bits(void)
{
	long sum = 0;

	for (int i = 0; i < 100; i++)
		sum = sum * 3 + highest((uint64_t)(0x55 & i)) % 1000;
	return sum;
}

int main(void)
{
	printf("qsort %d\n", out_of_qsort());
	threads();
	printf("cleaned %d\n", cleaned);
	printf("bits %lu\n", (unsigned long)all_bits());
	return 0;
}
