/*
 * What reserving room in a ring costs, three ways, everything else alike: a stamp, a header, a thread id and two
 * values, 24 bytes, into a per-CPU buffer. One thread, buffer in the cache; nanoseconds a record, the least of many
 * rounds.
 *
 *	exchange	what pads do: a lock taken by xchg, released by a store; nothing waits
 *	locked add	room by lock xadd, as LTTng does it; needs a second counter for the commit, which is left out
 *			here
 *	rseq		a restartable sequence that ends in the store of the new position
 *
 * docs/internals/rings.md has figures and what follows from them.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <time.h>
#include <x86intrin.h>

#define ROUNDS 400
#define RECORDS 20000
#define SIZE 24

struct ring {
	uint64_t lock, cur, last;
	char data[RECORDS * SIZE + 64];
} __attribute__((aligned(64)));

static struct ring ring;
static int32_t tid = 4242;

static inline void fill(char *at, uint64_t tsc, int32_t a, int64_t b)
{
	tsc = tsc << 20 | 7;
	memcpy(at, &tsc, 8);
	memcpy(at + 8, &tid, 4);
	memcpy(at + 12, &a, 4);
	memcpy(at + 16, &b, 8);
}

__attribute__((noinline)) static void by_exchange(int32_t a, int64_t b)
{
	uint64_t tsc;

	if (__atomic_exchange_n(&ring.lock, 1, __ATOMIC_ACQUIRE))
		abort();
	tsc = __rdtsc();
	if (tsc < ring.last)
		tsc = ring.last;
	ring.last = tsc;
	fill(ring.data + ring.cur, tsc, a, b);
	__atomic_store_n(&ring.cur, ring.cur + SIZE, __ATOMIC_RELEASE);
	__atomic_store_n(&ring.lock, 0, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void by_locked_add(int32_t a, int64_t b)
{
	uint64_t at = __atomic_fetch_add(&ring.cur, SIZE, __ATOMIC_ACQ_REL);

	fill(ring.data + at, __rdtsc(), a, b);
}

/* The descriptor and the abort handler lie out of line; the abort address is preceded by the signature (man 2 rseq). */
__attribute__((noinline)) static void by_rseq(int32_t a, int64_t b)
{
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	uint64_t tsc_low, tsc_high, cur;

	__asm__ volatile(".pushsection .data.rel, \"aw\"\n"
			 ".balign 32\n"
			 "9: .long 0, 0\n"
			 ".quad 1f, 2f - 1f, 3f\n"
			 ".popsection\n"
			 "4: lea 9b(%%rip), %%rax\n"
			 "mov %%rax, 8(%[area])\n"
			 "1: mov %[position], %[cur]\n"
			 "rdtsc\n"
			 "shl $32, %%rdx\n or %%rdx, %%rax\n shl $20, %%rax\n or $7, %%rax\n"
			 "mov %%rax, (%[data], %[cur])\n"
			 "mov %[tid], %%eax\n"
			 "mov %%eax, 8(%[data], %[cur])\n"
			 "mov %[a], 12(%[data], %[cur])\n"
			 "mov %[b], 16(%[data], %[cur])\n"
			 "add $24, %[cur]\n"
			 "mov %[cur], %[position]\n"
			 "2: movq $0, 8(%[area])\n"
			 ".pushsection .text.unlikely, \"ax\"\n"
			 ".long 0x53053053\n"
			 "3: jmp 4b\n"
			 ".popsection\n"
			 : "=&a"(tsc_low), "=&d"(tsc_high), [cur] "=&r"(cur), [position] "+m"(ring.cur)
			 : [area] "r"(area), [data] "r"(ring.data), [tid] "m"(tid), [a] "r"(a), [b] "r"(b)
			 : "memory", "cc");
}

static double best_of(void (*record)(int32_t, int64_t))
{
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec begin, end;
		double ns;

		ring.cur = 0;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		for (int k = 0; k < RECORDS; k++)
			record(k, k);
		clock_gettime(CLOCK_MONOTONIC, &end);
		ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / RECORDS;
		if (ns < best)
			best = ns;
	}
	return best;
}

int main(void)
{
	printf("exchange    %5.1f ns a record\n", best_of(by_exchange));
	printf("locked add  %5.1f ns a record\n", best_of(by_locked_add));
	if (__rseq_size)
		printf("rseq        %5.1f ns a record\n", best_of(by_rseq));
	return 0;
}
