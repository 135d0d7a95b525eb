/*
 * Four threads call look() with addresses in memory that two others map over, protect and drop meanwhile, until
 * input ends. Whatever of it is there has zeros and 0x5a in it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define N_READERS 4
#define N_TAKERS 2
#define N_SLOTS 16u
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static uint8_t *slots; /* two pages each */
static bool is_over;
static uint64_t n_looks;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	return x * UINT64_C(0xc4ceb9fe1a85ec53);
}

__attribute__((noinline)) uint64_t look(const void *at, uint64_t n)
{
	__asm__ volatile("" ::"r"(at) : "memory");
	return n + 1;
}

static void *read_on(void *data)
{
	uint64_t seed = (uintptr_t)data + 1, n = 0;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		n = look(slots + (seed = mix(seed + 1)) % (N_SLOTS * 2 * PAGE - 2 * PAGE), n);
		usleep(20);
	}
	__atomic_fetch_add(&n_looks, n, __ATOMIC_RELAXED);
	return NULL;
}

static void put_back(uint8_t *at)
{
	uint64_t *words = mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	for (unsigned int i = 0; i < 2 * PAGE / 8; i++)
		words[i] = i % 5 == 4 ? 0 : UINT64_C(0x5a5a5a5a5a5a5a5a);
}

static void *take_away(void *data)
{
	uint64_t seed = (uintptr_t)data + 100;
	void *moved;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		uint8_t *at =
			slots + ((seed = mix(seed + 1)) % (N_SLOTS / N_TAKERS) * N_TAKERS + (uintptr_t)data) * 2 * PAGE;

		switch ((seed >> 40) % 6) {
		case 0: /* no hole: another mapping might get that, the recorder's, too */
			mmap(at, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 1:
			mmap(at + PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		case 2:
			mprotect(at, PAGE, PROT_NONE);
			break;
		case 3: /* it faults from here on, where the kernel has guards (6.13) */
			madvise(at, PAGE, MADV_GUARD_INSTALL);
			break;
		case 4: /* what was there is elsewhere, and zeros are here */
			moved = mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
			if (moved != MAP_FAILED)
				munmap(moved, 2 * PAGE);
			break;
		default:
			madvise(at, 2 * PAGE, MADV_DONTNEED);
			break;
		}
		usleep(50);
		put_back(at);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[N_READERS + N_TAKERS];
	char byte;

	slots = mmap(NULL, N_SLOTS * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slots == MAP_FAILED)
		return 1;
	for (unsigned int i = 0; i < N_SLOTS; i++)
		put_back(slots + (size_t)i * 2 * PAGE);
	for (uintptr_t i = 0; i < N_READERS + N_TAKERS; i++)
		if (pthread_create(&threads[i], NULL, i < N_READERS ? read_on : take_away,
				   (void *)(i < N_READERS ? i : i - N_READERS)))
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < N_READERS + N_TAKERS; i++)
		pthread_join(threads[i], NULL);
	printf("%llu looks\n", (unsigned long long)n_looks);
	return 0;
}
