/*
 * sdted ROUNDS LOG [wait]
 *
 * SDT probes with operands of all sorts. Passes them ROUNDS times, with a third argument for each line that it reads.
 * Writes what it passed to LOG, one JSON object a probe. `guarded` and `shared` are passed while their semaphores are
 * not 0; how often is printed at the end.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noipa))
#endif

unsigned short sdted_guarded_semaphore __attribute__((section(".probes")));
unsigned short sdted_shared_semaphore __attribute__((section(".probes")));
unsigned short sdted_registers_semaphore __attribute__((section(".probes")));
unsigned short sdted_constants_semaphore __attribute__((section(".probes")));
unsigned short sdted_globals_semaphore __attribute__((section(".probes")));
unsigned short sdted_stack_semaphore __attribute__((section(".probes")));
unsigned short sdted_memory_semaphore __attribute__((section(".probes")));
unsigned short sdted_table_semaphore __attribute__((section(".probes")));

int counter;
static long long_counter;
static short table[8] = { -1, 2, -3, 4, -5, 6, -7, 8 };
static FILE *record;
static long guarded;

OWN void registers(int a, long b, unsigned char c, short d)
{
	DTRACE_PROBE4(sdted, registers, a, b, c, d);
	fprintf(record, "{\"name\": \"registers\", \"values\": [%d, %ld, %u, %d]}\n", a, b, c, d);
}

OWN void constants(void)
{
	DTRACE_PROBE5(sdted, constants, 7, -7, 1l << 40, (unsigned char)200, 0x7fffffff);
	fprintf(record, "{\"name\": \"constants\", \"values\": [7, -7, %ld, 200, 2147483647]}\n", 1l << 40);
}

OWN void globals(void)
{
	DTRACE_PROBE2(sdted, globals, counter, long_counter);
	fprintf(record, "{\"name\": \"globals\", \"values\": [%d, %ld]}\n", counter, long_counter);
}

OWN void stack(long i)
{
	volatile long near[3] = { i, -i, i * 3 };
	volatile char far[9000];
	volatile int small = (int)i;

	far[0] = far[8999] = (char)i;
	DTRACE_PROBE5(sdted, stack, near[0], near[1], near[2], small, far[8999]);
	fprintf(record, "{\"name\": \"stack\", \"values\": [%ld, %ld, %ld, %d, %d]}\n", near[0], near[1], near[2],
		small, far[8999]);
}

/* What a pointer leads to can be read only where that is for certain. */
OWN void memory(const long *p, long i)
{
	DTRACE_PROBE3(sdted, memory, p[2], i, p[i & 1]);
	fprintf(record, "{\"name\": \"memory\", \"values\": [%ld, %ld, %ld]}\n", p[2], i, p[i & 1]);
}

OWN void indexed(unsigned long i)
{
	DTRACE_PROBE1(sdted, table, table[i & 7]);
	fprintf(record, "{\"name\": \"table\", \"values\": [%d]}\n", table[i & 7]);
}

OWN void guard(long i)
{
	if (__builtin_expect(sdted_guarded_semaphore, 0)) {
		DTRACE_PROBE1(sdted, guarded, i);
		guarded++;
		fprintf(record, "{\"name\": \"guarded\", \"values\": [%ld]}\n", i);
	}
	if (__builtin_expect(sdted_shared_semaphore, 0))
		DTRACE_PROBE1(sdted, shared, i);
	if (__builtin_expect(sdted_shared_semaphore, 0))
		DTRACE_PROBE1(sdted, shared, -i);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? strtol(argv[1], NULL, 0) : 1, *heap = calloc(3, sizeof(*heap));
	long on_stack[3];
	char c;

	record = fopen(argc > 2 ? argv[2] : "/dev/null", "w");
	if (!record || !heap)
		return 1;
	puts("ready");
	fflush(stdout);
	for (long turn = 0; argc > 3 ? read(0, &c, 1) == 1 : turn < 1; turn++) {
		for (long i = 0; i < n; i++) {
			counter = (int)-i;
			long_counter = i << 34;
			heap[0] = on_stack[0] = i + 1;
			heap[1] = on_stack[1] = i + 2;
			heap[2] = on_stack[2] = i + 3;
			registers((int)i, -i, (unsigned char)i, (short)-i);
			constants();
			globals();
			stack(i);
			memory(on_stack, i);
			memory(heap, i);
			indexed((unsigned long)i);
			guard(i);
		}
		fflush(record);
		puts("done");
		fflush(stdout);
	}
	printf("{\"guarded\": %ld}\n", guarded);
	free(heap);
	return 0;
}
