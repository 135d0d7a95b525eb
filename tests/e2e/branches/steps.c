/*
 * Without a library, so that each instruction is its own: sorts, recurses, jumps through tables and pointers, copies by
 * repeated string instructions, pushes and pops flags, makes system calls. Ends with the status that it has computed.
 */
static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static int items[24];
static char from[300], to[300];

static void sort(int *list, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && list[k - 1] > list[k]; k--) {
			int item = list[k];

			list[k] = list[k - 1];
			list[k - 1] = item;
		}
}

__attribute__((noinline)) static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int twice(int n)
{
	return 2 * n;
}

static int less(int n)
{
	return n - 3;
}

static int (*volatile const functions[])(int) = { twice, less, fib };

__attribute__((noinline)) static int choose(int n)
{
	switch (n % 7) {
	case 0:
		return 5;
	case 1:
		return n * 3;
	case 2:
		return fib(3);
	case 3:
		return n - 4;
	case 4:
		return 11;
	case 5:
		return n / 2;
	default:
		return 1;
	}
}

static void copy(void)
{
	void *source = from, *target = to;
	long n = sizeof(from);

	__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(n) : : "memory");
}

static unsigned long flags(void)
{
	unsigned long value;

	__asm__ volatile("pushfq\n\tpushfq\n\tpopfq\n\tpop %0" : "=r"(value) : : "cc", "memory");
	return value & 0x100;
}

__attribute__((noreturn, used)) void begin(void)
{
	unsigned int state = 7, sum = 0;

	for (int i = 0; i < 24; i++)
		items[i] = (int)(state = state * 1103515245 + 12345) >> 16;
	sort(items, 24);
	for (int i = 0; i < 12; i++)
		sum += (unsigned int)(choose(i) + functions[i % 3](i % 6));
	copy();
	sum += (unsigned int)(items[3] + to[7]) + (unsigned int)flags();
	call(1, 1, (long)"steps\n", 6);
	call(231, sum & 0x7f, 0, 0);
	for (;;)
		;
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tcall begin\n");
