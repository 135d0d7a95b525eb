/*
 * Calls look() with things that are linked by pointers, and with strings; some of them are not there.
 *
 *	memory [limit]	`limit`: the process says no_new_privs in the middle
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define N 64
#define PAGE 4096

struct thing {
	uint32_t id;
	int32_t back;
	const char *name;
	const struct thing *next;
	uint8_t bytes[8];
};

__attribute__((noinline)) uint64_t look(const struct thing *thing, const char *text, uint64_t n)
{
	__asm__ volatile("" ::"r"(thing), "r"(text), "r"(n) : "memory");
	return n;
}

int main(int argc, char **argv)
{
	static struct thing things[N];
	static char names[N][300];
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE))
		return 1;
	memset(pages, 'p', PAGE);
	for (unsigned int i = 0; i < N; i++) {
		memset(names[i], 'a' + (int)(i % 26), i * 4);
		things[i] = (struct thing){ i,
					    -(int32_t)i,
					    names[i],
					    i % 8 == 7 ? NULL : &things[(i + 1) % N],
					    { (uint8_t)i, 1, 2, 3, 4, 5, 6, 7 } };
	}
	for (unsigned int i = 0; i < N; i++) {
		char on_stack[32];

		snprintf(on_stack, sizeof(on_stack), "on the stack %u", i);
		if (argc > 1 && i == N / 2)
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		look(&things[i],
		     i % 4 == 0   ? on_stack
		     : i % 4 == 1 ? NULL
		     : i % 4 == 2 ? pages + PAGE - 3
				  : names[i],
		     i);
	}
	printf("%s done\n", argv[0] ? "memory" : "");
	return 0;
}
