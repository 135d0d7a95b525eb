/*
 * `contexts switch`: four contexts compute, and a handler of SIGVTALRM switches between them with swapcontext(). So
 * each is suspended within a handler. It ends after some seconds.
 *
 * `contexts raw` computes while threads come and go that are made without the library, with its control block.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define N 4
#define ROUNDS 300000
#define SWITCHES 400
#define THREADS 200

static ucontext_t contexts[N];
static volatile int current, n_switches;
static unsigned int wanted;

__attribute__((noipa)) unsigned int spin(unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (i * 2654435761u & 8)
			sum += i;
		else
			sum ^= i;
	}
	return sum;
}

static void compute(void)
{
	for (;;)
		if (spin(ROUNDS) != wanted)
			_exit(3);
}

static void on_time(int signal)
{
	const int before = current;

	(void)signal;
	if (++n_switches == SWITCHES)
		_exit(0);
	current = (current + 1) % N;
	swapcontext(&contexts[before], &contexts[current]);
}

static int switching(void)
{
	const struct itimerval timer = { { 0, 5000 }, { 0, 5000 } };
	struct sigaction action = { .sa_handler = on_time, .sa_flags = SA_RESTART | SA_NODEFER };

	wanted = spin(ROUNDS);
	for (int i = 0; i < N; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = malloc(262144);
		contexts[i].uc_stack.ss_size = 262144;
		makecontext(&contexts[i], compute, 0);
	}
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	return setcontext(&contexts[0]);
}

static int end(void *unused)
{
	(void)unused;
	for (;;)
		syscall(SYS_exit, 0);
}

static int making_threads(void)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

	wanted = spin(ROUNDS);
	for (int i = 0; i < THREADS; i++) {
		char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (clone(end, stack + 65536, flags, NULL) < 0 || spin(ROUNDS) != wanted)
			return 3;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	return !strcmp(argv[1], "switch") ? switching() : making_threads();
}
