/*
 * overflow THREADS
 *
 * Threads with the smallest stacks wait for a line on stdin. Then each calls deep() until that meets the guard page,
 * catches the fault on a stack of its own, and jumps out; so it does from STARTS places of its stack. For each thread
 * the program prints how often deep() was entered and got to count that: in all, and from each place. That is the same
 * in each run.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STARTS 40 /* 16 bytes apart: more than a pad takes */

struct state {
	sigjmp_buf out;
	uint64_t depths[STARTS];
	uint64_t sum;
};

static __thread struct state *own;
static pthread_barrier_t begin;

/* deep(count): counts in *count and calls itself, for ever. It takes 40 bytes of the stack, so it is a push that meets
 * the guard at one time, and a call at another. The flags are written before they are read. */
void deep(uint64_t *count);
__asm__(".text\n"
	".globl deep\n"
	".type deep, @function\n"
	"deep:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	sub $24, %rsp\n"
	"	addq $1, (%rbx)\n"
	"	mov %rbx, %rdi\n"
	"	call deep\n"
	"	add $24, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size deep, .-deep\n");

static void handler(int signal)
{
	siglongjmp(own->out, signal);
}

static __attribute__((noinline)) void start(size_t lower, uint64_t *count)
{
	volatile char *space = __builtin_alloca(lower + 16);

	space[0] = 0;
	deep(count);
	space[1] = 0;
}

static void *overflow(void *arg)
{
	struct state *state = arg;
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };

	own = state;
	sigaltstack(&stack, NULL);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&begin);
	for (volatile int i = 0; i < STARTS; i++) {
		if (!sigsetjmp(state->out, 1))
			start(16 * (size_t)i, &state->depths[i]);
		state->sum += state->depths[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	struct state *states = calloc((size_t)n, sizeof(*states));
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));
	pthread_attr_t attr;
	char line[16];

	sigaction(SIGSEGV, &action, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	pthread_barrier_init(&begin, NULL, (unsigned int)n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attr, overflow, &states[i]))
			return 2;
	pthread_barrier_wait(&begin);
	fprintf(stderr, "ready\n");
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	pthread_barrier_wait(&begin);
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		printf("thread %d: %lu:", i, states[i].sum);
		for (int k = 0; k < STARTS; k++)
			printf(" %lu", states[i].depths[k]);
		printf("\n");
	}
	return 0;
}
