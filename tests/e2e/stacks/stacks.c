/* Calls of leaf() from everywhere: a recursion, signal handlers, threads, a coroutine, and with frame pointers that
 * lead nowhere. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define KEEP(n) __asm__ volatile("" : "+r"(n))

__attribute__((noinline, noclone)) int leaf(int n)
{
	KEEP(n);
	return n + 1;
}

__attribute__((noinline, noclone)) int recurse(int n)
{
	int result = n ? recurse(n - 1) : leaf(n);

	KEEP(result);
	return result + 1;
}

__attribute__((noinline, noclone)) int wide(int n)
{
	volatile char room[20000];
	int result;

	room[0] = (char)n;
	result = leaf(room[0]);
	KEEP(result);
	return result;
}

static void handler(int signal)
{
	int result = leaf(signal);

	KEEP(result);
}

static void *thread(void *data)
{
	int result = recurse(3);

	KEEP(result);
	return data;
}

static ucontext_t before, other;

static void coroutine(void)
{
	int result = recurse(2);

	KEEP(result);
}

static void run_coroutine(void)
{
	getcontext(&other);
	other.uc_stack.ss_size = 16384;
	other.uc_stack.ss_sp =
		mmap(NULL, other.uc_stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	other.uc_link = &before;
	makecontext(&other, coroutine, 0);
	swapcontext(&before, &other);
}

/* leaf() with this frame pointer. */
static void with_frame_pointer(uint64_t value)
{
	__asm__ volatile("sub $128, %%rsp\n\t"
			 "push %%rbp\n\t"
			 "mov %0, %%rbp\n\t"
			 "call leaf\n\t"
			 "pop %%rbp\n\t"
			 "add $128, %%rsp"
			 :
			 : "r"(value)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

static void spoil(void)
{
	uint64_t loop[2] = { 0, (uint64_t)(uintptr_t)spoil };
	const uint64_t values[] = { (uint64_t)(uintptr_t)loop, 0, 1, UINT64_MAX, UINT64_C(0x7fffffffffff),
				    UINT64_C(1) << 63 };

	loop[0] = (uint64_t)(uintptr_t)loop;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		with_frame_pointer(values[i]);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	pthread_t id;
	int result = recurse(argc > 1 ? atoi(argv[1]) : 5);

	KEEP(result);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
	pthread_create(&id, NULL, thread, NULL);
	pthread_join(id, NULL);
	run_coroutine();
	result = wide(argc);
	KEEP(result);
	spoil();
	return 0;
}
