/*
 * The kernels of tests/targets/kernels.c, one after the other: ns that a call of each takes, a line of the file each.
 * The least of many rounds of the thread's own time. With -DBENCH_TRACE_PC each block of them calls what records it: a
 * ring of the thread, by an index in its own memory.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUND_NS 4000000

long kernel_qsort(long), kernel_sort(long), kernel_interpret(long), kernel_tokenize(long), kernel_fib(long),
	kernel_lz(long);

static const struct {
	const char *name;
	long (*run)(long);
	long much;
} kernels[] = {
	{ "quick sort", kernel_qsort, 20 },       { "insertion sort", kernel_sort, 20 },
	{ "interpreter", kernel_interpret, 200 }, { "tokenizer", kernel_tokenize, 20 },
	{ "recursive fib", kernel_fib, 18 },      { "lz", kernel_lz, 20 },
};

#ifdef BENCH_TRACE_PC
#define ENTRIES 16384u

static __thread uint32_t at, ring[ENTRIES];

void __sanitizer_cov_trace_pc(void)
{
	ring[at++ % ENTRIES] = (uint32_t)(uintptr_t)__builtin_return_address(0);
}
#endif

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t run(int i, long times)
{
	const uint64_t begin = now_ns();

	for (long n = 0; n < times; n++)
		(void)kernels[i].run(kernels[i].much);
	return now_ns() - begin;
}

static double measure(int i, int rounds)
{
	const uint64_t once = run(i, 1) + run(i, 1) / 2 + 1;
	const long times = (long)(ROUND_NS / once) + 1;
	double least = 1e30;

	for (int round = 0; round < rounds; round++) {
		const double ns = (double)run(i, times) / (double)times;

		least = ns < least ? ns : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	FILE *out = argc > 2 ? fopen(argv[1], "w") : NULL;

	if (!out) {
		fprintf(stderr, "usage: branches FILE ROUNDS\n");
		return 2;
	}
	for (int i = 0; i < (int)(sizeof(kernels) / sizeof(kernels[0])); i++)
		fprintf(out, "%s\t%.1f\n", kernels[i].name, measure(i, atoi(argv[2])));
	return fclose(out) != 0;
}
