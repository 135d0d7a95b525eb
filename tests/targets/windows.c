/*
 * windows [THREADS]
 *
 * THREADS (4) threads call spin(), a long row of pairs of instructions: one of four bytes and one of a single byte. A
 * probe at the first displaces both, whether or not the second can have one of its own. So some thread is nearly always
 * in the middle of what a probe displaces. Runs until SIGTERM; prints how often spin() was called. Threads pause now
 * and then, so that others get their turn on a machine with few processors.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "target.h"

#define MAX_THREADS 64

/* Returns the second of `words`. */
long spin(const long *words);

__asm__(".text\n"
	".globl spin\n"
	".type spin, @function\n"
	".balign 4096\n"
	"spin:\n"
	"	push %rbx\n"
	".rept 300\n"
	"	mov 8(%rdi), %rax\n"
	"	cld\n"
	".endr\n"
	"	pop %rbx\n"
	"	ret\n"
	".size spin, . - spin\n");

static atomic_bool stop;
static _Atomic uint64_t calls;

static void *run(void *arg)
{
	const long words[] = { 1, (long)arg + 2, 3 };
	uint64_t n = 0;

	for (; !stop; n++) {
		CHECK(spin(words) == (long)arg + 2);
		if (n % 4096 == 0)
			usleep(200);
	}
	calls += n;
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? number(argv[1]) : 4;
	pthread_t threads[MAX_THREADS];
	sigset_t set;
	int got;

	if (n < 1 || n > MAX_THREADS)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
	say("ready\n");
	CHECK(sigwait(&set, &got) == 0);
	stop = true;
	for (long i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("{\"spin\": %lu}\n", calls);
	return 0;
}
