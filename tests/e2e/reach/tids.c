/*
 * tids [-f | -c | -r] THREADS CALLS
 *
 * The first thread and THREADS others, I counted from 0, call outer(1000 * I + K) for each K below CALLS + I; the first
 * call of each is over only when all are in theirs. Each prints "TID I".
 *
 *	-f	then, while the others live, a forked child does the same with threads of its own
 *	-c	a child that is made without the library, so that its control block stays the same, does what the
 *		first thread does, alone
 *	-r	one more thread, with the control block of the first, calls outer(0) before all that, and prints nothing
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_THREADS 64
#define NOINLINE __attribute__((noinline, noclone))

struct crowd {
	pthread_barrier_t in, out, done;
	long calls;
	int n;
};

struct member {
	struct crowd *crowd;
	long index;
};

NOINLINE long inner(long n)
{
	__asm__ volatile("" : "+r"(n));
	n = 3 * n + 1;
	/* Room for a jump before the `ret`: a pun there would need free memory at one address, which not each layout
	 * has. */
	__asm__ volatile("nopl 64(%%rax)" : "+r"(n));
	return n;
}

NOINLINE long outer(long n, struct crowd *crowd)
{
	long result;

	if (crowd)
		pthread_barrier_wait(&crowd->in);
	result = inner(n);
	if (crowd)
		pthread_barrier_wait(&crowd->out);
	return result + 7;
}

/* Without a lock of the library, which a thread may have had when a child was made: in the child no thread releases it.
 */
static void say(long index)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%ld %ld\n", syscall(SYS_gettid), index);

	if (write(1, line, (size_t)n) != n)
		abort();
}

static void call(struct crowd *crowd, long index, int meets)
{
	for (long k = 0; k < crowd->calls + index; k++)
		if (outer(1000 * index + k, k || !meets ? NULL : crowd) != 3 * (1000 * index + k) + 8)
			abort();
	say(index);
}

static void *run(void *data)
{
	struct member *member = data;

	call(member->crowd, member->index, 1);
	pthread_barrier_wait(&member->crowd->done);
	return NULL;
}

static void run_crowd(int n, long calls, int forks)
{
	struct member members[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	struct crowd crowd = { .calls = calls, .n = n };
	int status = 0;

	pthread_barrier_init(&crowd.in, NULL, (unsigned int)n + 1);
	pthread_barrier_init(&crowd.out, NULL, (unsigned int)n + 1);
	pthread_barrier_init(&crowd.done, NULL, (unsigned int)n + 1);
	for (int i = 0; i < n; i++) {
		members[i] = (struct member){ &crowd, i + 1 };
		if (pthread_create(&threads[i], NULL, run, &members[i]))
			abort();
	}
	call(&crowd, 0, 1);
	if (forks) {
		pid_t child = forks == 'f' ? fork() : (pid_t)syscall(SYS_fork);

		if (!child && forks == 'f')
			run_crowd(n, calls, 0);
		else if (!child)
			call(&crowd, 0, 0);
		if (!child)
			_exit(0);
		if (waitpid(child, &status, 0) != child || status)
			abort();
	}
	pthread_barrier_wait(&crowd.done);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static volatile int is_over;

static int raw(void *data)
{
	(void)data;
	outer(0, NULL);
	is_over = 1;
	for (;;)
		syscall(SYS_exit, 0);
}

static void run_raw(void)
{
	char *stack = malloc(65536);

	if (!stack || clone(raw, stack + 65536,
			    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL) < 0)
		abort();
	while (!is_over)
		sched_yield();
}

int main(int argc, char **argv)
{
	int option = argc > 1 && argv[1][0] == '-' ? argv[1][1] : 0;

	if (argc != 3 + !!option)
		return 2;
	if (option == 'r')
		run_raw();
	run_crowd(atoi(argv[argc - 2]), atol(argv[argc - 1]), option == 'r' ? 0 : option);
	return 0;
}
