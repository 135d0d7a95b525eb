/*
 * Stacks that are known. Each mode makes getppid() where it is told:
 *
 *	nested		outer > middle > inner
 *	threads		the same in four threads
 *	handler		in the handler of a signal that raise() has sent, out of outer
 *	library FILE	in a function of a library that is loaded, closed, and loaded again
 *	made		through code that the program has made
 *	hostile		with stacks that are none
 *	endless		in recursion that is deeper than kymo looks
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HERE __attribute__((noinline, noclone))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

HERE void inner(void)
{
	getppid();
	NO_TAIL_CALL;
}

HERE void middle(void)
{
	inner();
	NO_TAIL_CALL;
}

HERE void outer(void)
{
	middle();
	NO_TAIL_CALL;
}

static void *in_thread(void *data)
{
	outer();
	NO_TAIL_CALL;
	return data;
}

static void threads(void)
{
	pthread_t made[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&made[i], NULL, in_thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(made[i], NULL);
}

static void on_signal(int number)
{
	inner();
	NO_TAIL_CALL;
}

HERE void raise_it(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	NO_TAIL_CALL;
}

HERE void library(const char *path)
{
	for (int i = 0; i < 2; i++) {
		void *handle = dlopen(path, RTLD_NOW);
		void (*call)(void (*)(void)) = handle ? (void (*)(void (*)(void)))dlsym(handle, "in_library") : NULL;

		if (!call)
			exit(1);
		call(inner);
		dlclose(handle);
	}
}

HERE void made(void)
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(at, code, sizeof(code));
	mprotect(at, 4096, PROT_READ | PROT_EXEC);
	((void (*)(void (*)(void)))(uintptr_t)at)(inner);
	NO_TAIL_CALL;
}

/* A call with any stack and frame pointer. */
HERE void call_with(uint64_t stack, uint64_t frame)
{
	register uint64_t number __asm__("rax") = SYS_getppid;

	__asm__ volatile("mov %%rsp, %%r12; mov %%rbp, %%r13; mov %1, %%rsp; mov %2, %%rbp; syscall; mov %%r12, %%rsp; "
			 "mov %%r13, %%rbp"
			 : "+r"(number)
			 : "r"(stack), "r"(frame)
			 : "rcx", "r11", "r12", "r13", "memory");
}

static void hostile(void)
{
	static uint64_t words[4096];

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		words[i] = i % 2 ? (uint64_t)(uintptr_t)call_with + 20 : (uint64_t)(uintptr_t)&words[(i + 2) % 4096];
	call_with((uintptr_t)words, (uintptr_t)words);
	call_with((uintptr_t)&words[4000], (uintptr_t)&words[1]);
	call_with(0, 0);
	call_with(8, 8);
	call_with(UINT64_MAX - 7, UINT64_MAX - 7);
	call_with(0xffffffff81000000, 0x7ffffffff000);
}

HERE int endless(int n)
{
	int result = n ? endless(n - 1) : getppid();

	NO_TAIL_CALL;
	return result;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "nested";

	if (!strcmp(mode, "threads"))
		threads();
	else if (!strcmp(mode, "handler"))
		raise_it();
	else if (!strcmp(mode, "library"))
		library(argv[2]);
	else if (!strcmp(mode, "made"))
		made();
	else if (!strcmp(mode, "hostile"))
		hostile();
	else if (!strcmp(mode, "endless"))
		endless(1000);
	else
		outer();
	return 0;
}
