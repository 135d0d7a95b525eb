/* Calls a function from functions that are inlined: twice, or with an argument until it is ended. */
#include <unistd.h>

__attribute__((noinline)) void leaf(int n)
{
	__asm__ volatile(".fill 8, 1, 0x90" : : "r"(n));
}

static inline __attribute__((always_inline)) void parse_number(int n)
{
	leaf(n + 1);
	__asm__ volatile("nop");
}

static inline __attribute__((always_inline)) void parse(int n)
{
	for (int i = 0; i < 2; i++) {
		parse_number(n * i);
		__asm__ volatile("nop");
	}
}

__attribute__((noinline)) int outer(int n)
{
	parse(n);
	__asm__ volatile("nop");
	return n;
}

int main(int argc, char **argv)
{
	outer(argc);
	while (argc > 1) {
		usleep(10000);
		outer(argc);
	}
	return argv ? 0 : 1;
}
