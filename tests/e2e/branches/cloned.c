/* What runs in clones of its functions: threads, forks, faults, ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define BARRIER(n) __asm__ volatile("" : "+r"(n))

extern char **environ;

/* ---- work ------------------------------------------------------------------------------------ */

static NOINLINE int collatz(unsigned n)
{
	int steps = 0;

	for (; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static NOINLINE int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static NOINLINE int choose(int what, int n)
{
	BARRIER(n);
	switch (what % 7) {
	case 0:
		return n + 1;
	case 1:
		return n * 3;
	case 2:
		return n ^ 0x55;
	case 3:
		return n - 7;
	case 4:
		return n / 3;
	case 5:
		return -n;
	default:
		return n;
	}
}

static int compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

static jmp_buf back;

static NOINLINE void leap(int n)
{
	if (n > 3)
		longjmp(back, n);
	leap(n + 1);
}

static NOINLINE int work(void)
{
	volatile int sum = 0;
	int numbers[50];

	for (int i = 1; i < 30; i++)
		sum += collatz((unsigned)i) + choose(i, i * 11);
	for (int i = 0; i < 50; i++)
		numbers[i] = i * 7919 % 101;
	qsort(numbers, 50, sizeof(numbers[0]), compare);
	if (!setjmp(back))
		leap(0);
	return sum + numbers[20] + fib(9);
}

/* ---- threads --------------------------------------------------------------------------------- */

static NOINLINE void *one(void *n)
{
	return (void *)(long)collatz((unsigned)(long)n);
}

static NOINLINE void *other(void *n)
{
	return (void *)(long)choose((int)(long)n, 5);
}

/* One after the other: the second has the stack of the first. */
static void threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, one, (void *)27L);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, other, (void *)3L);
	pthread_join(thread, NULL);
}

static volatile int n_ready;

static void *spin(void *n)
{
	fib(8);
	__atomic_add_fetch(&n_ready, 1, __ATOMIC_RELAXED);
	for (;;)
		fib(5);
	return NULL;
}

static void many(void)
{
	pthread_t thread;

	for (long i = 0; i < 64; i++)
		pthread_create(&thread, NULL, spin, NULL);
	while (n_ready < 64)
		usleep(1000);
}

/* ---- children -------------------------------------------------------------------------------- */

static NOINLINE int in_child(int n)
{
	for (int i = 0; i < 30000; i++)
		n = choose(i, n);
	return n ? 7 : 8;
}

static int status_of(pid_t child)
{
	int status = 0;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static NOINLINE int children(void)
{
	char *argv[] = { "true", NULL };
	pid_t child = fork();
	int sum;

	if (!child)
		_exit(in_child(1));
	sum = status_of(child);
	child = vfork();
	if (!child)
		_exit(choose(0, 4));
	sum += status_of(child);
	posix_spawnp(&child, "true", NULL, NULL, argv, environ);
	return sum + status_of(child);
}

static volatile pid_t made;

static void fork_once(int signal)
{
	if (made)
		return;
	made = fork();
	if (!made)
		made = -1;
}

/* A child that returns from a handler into the middle of a clone. */
static int handler_forks(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	int sum = 0;

	signal(SIGALRM, fork_once);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (!made)
		sum |= fib(12);
	if (made < 0)
		_exit(in_child(sum));
	return status_of(made);
}

static volatile int has_rung;

static NOINLINE void on_alarm(int signal)
{
	int n = 1;

	for (int i = 0; i < 50; i++)
		n = choose(i, n);
	has_rung = n | 1;
}

/* It ends as soon as the handler has returned. Most of its time is between its branches. */
static NOINLINE int until_alarm(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 2000 } };
	unsigned n = 1;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &soon, NULL);
	while (!has_rung) {
		for (int i = 0; i < 32; i++) {
			n *= 7919;
			BARRIER(n);
		}
	}
	return n != 0;
}

/* ---- faults ---------------------------------------------------------------------------------- */

static NOINLINE int fault(volatile int *at)
{
	*at = 1;
	return *at + 1;
}

static sigjmp_buf after;
static volatile int is_there;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	const unsigned long pc = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	is_there = pc - (unsigned long)fault < 64;
	siglongjmp(after, 1);
}

static int faults(const char *what)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	int n = 0;

	sigaction(SIGSEGV, &action, NULL);
	for (volatile int i = 0; i < 20; i++) {
		if (!sigsetjmp(after, 1))
			fault((volatile int *)8);
		n += is_there;
	}
	if (!strcmp(what, "handler stays"))
		sleep(3);
	return n;
}

static volatile int *page;

static void let_in(int signal, siginfo_t *info, void *context)
{
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
}

/* The handler returns to the instruction, in the middle of a loop. */
static NOINLINE int returns(void)
{
	struct sigaction action = { .sa_sigaction = let_in, .sa_flags = SA_SIGINFO };
	int sum = 0;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 1000; i++) {
		if (i % 3 == 2)
			page[i] = i;
		sum += i % 5 ? page[i] : choose(i, i);
	}
	return sum;
}

static volatile int was_cleaned;

static void clean(void *data)
{
	was_cleaned = 1;
}

static void *endless(void *data)
{
	int old, n = 1;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	pthread_cleanup_push(clean, NULL);
	n_ready = 1;
	for (;;)
		BARRIER(n);
	pthread_cleanup_pop(0);
	return NULL;
}

static int cancel(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, endless, NULL);
	while (!n_ready)
		usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	return was_cleaned;
}

int main(int argc, char **argv)
{
	const char *what = argv[1];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("work %d\n", work());
	if (!strcmp(what, "threads"))
		threads();
	if (!strcmp(what, "children"))
		printf("children %d\n", children());
	if (!strcmp(what, "handler"))
		printf("handler %d\n", handler_forks());
	if (!strcmp(what, "faults") || !strcmp(what, "handler stays"))
		printf("faults %d\n", faults(what));
	if (!strcmp(what, "returns"))
		printf("returns %d\n", returns());
	if (!strcmp(what, "cancel"))
		printf("cancel %d\n", cancel());
	if (!strcmp(what, "exec"))
		execl(argv[0], argv[0], "work", NULL);
	if (!strcmp(what, "alarm"))
		_exit(until_alarm() + 6);
	if (!strcmp(what, "crash"))
		fault((volatile int *)8);
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "_exit"))
		_exit(choose(0, 3));
	if (!strcmp(what, "many"))
		many();
	if (!strcmp(what, "many") || !strcmp(what, "kill"))
		raise(SIGKILL);
	while (!strcmp(what, "run"))
		if (printf("%d\n", work() + fib(20)) < 0)
			break;
	for (int n = 0; !strcmp(what, "loop");)
		BARRIER(n);
	return 0;
}
