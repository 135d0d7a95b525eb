/*
 * values: calls feed() with all that expressions are asked about: numbers of both signs, structures and pointers that
 * lead nowhere, texts of many lengths and one that ends where its memory does.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct item {
	int id;
	short kind;
	unsigned char flags;
	const char *name;
	struct item *next;
	long long big;
	unsigned int low : 3, high : 7;
};

long total;
struct item spare = { .id = 5, .big = -9, .name = "spare" };

__attribute__((noinline)) long feed(struct item *item, long n, unsigned int u, const char *text, signed char c)
{
	total += n & 0xff;
	__asm__ volatile("" : : "r"(item), "r"(n), "r"(u), "r"(text), "r"(c) : "memory");
	return n % 3 == 0 ? -n : (long)(n * u);
}

int main(void)
{
	static const long numbers[] = { 0,
					1,
					-1,
					7,
					-7,
					100,
					-100,
					0x7fffffff,
					-0x7fffffffL - 1,
					0x7fffffffffffffff,
					-0x7fffffffffffffff - 1,
					12345678901 };
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), longer[300];
	const char *texts[] = { "",          "a",     "12345678",     "123456789",
				"name",      "names", longer,         page + 4096 - 5,
				page + 4090, NULL,    (const char *)8 };
	const unsigned int n_numbers = sizeof(numbers) / sizeof(numbers[0]), n_texts = sizeof(texts) / sizeof(texts[0]);

	munmap(page + 4096, 4096);
	memcpy(page + 4096 - 5, "edge", 5);
	memset(page + 4090, 'x', 1);
	memset(longer, 'y', sizeof(longer));
	longer[299] = 0;
	for (unsigned int i = 0; i < 132; i++) {
		struct item next = { (int)i, (short)-i, (unsigned char)i, "next", NULL, 5, i & 7, i & 127 };
		struct item item = { (int)i - 60,
				     (short)(i * 1000),
				     (unsigned char)(i * 7),
				     texts[i % n_texts],
				     i % 4 ? &next : NULL,
				     numbers[i % n_numbers],
				     i & 7,
				     (i / 2) & 127 };

		feed(i % 10 == 9 ? NULL : &item, numbers[i % n_numbers], i * 0x3fffffff, texts[(i / 3) % n_texts],
		     (signed char)i);
	}
	return 0;
}
