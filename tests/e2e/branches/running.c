/*
 * Threads that loop, sleep, wait, leap and handle signals, until there is no more input. Each compares what it computes
 * with what it has computed before; the program ends with status 0 if all have found the same to the end. Words are the
 * kinds of threads that are left out, or of those that are not there otherwise. The word "killed" lets epoll_wait()
 * fail with EINTR: the kernel ends it so for a recorder's stop, and a killed recorder does not repair it
 * (what-can-break.md, Sleeping system calls).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define BARRIER(n) __asm__ volatile("" : "+r"(n))

static volatile int is_over;

static void check(int is_right, const char *what)
{
	if (is_right)
		return;
	fprintf(stderr, "%s is wrong (%s)\n", what, strerror(errno));
	abort();
}

/* ---- loops ----------------------------------------------------------------------------------- */

NOINLINE unsigned spin(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i * 2654435761u & 8)
			sum += i;
		else
			sum ^= i;
	}
	return sum;
}

static unsigned spins(void)
{
	return spin(2000000);
}

NOINLINE int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static unsigned recurses(void)
{
	return (unsigned)fib(22);
}

NOINLINE int choose(int what, int n)
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

static unsigned chooses(void)
{
	int n = 1;

	for (int i = 0; i < 20000; i++)
		n = choose(i, n);
	return (unsigned)n;
}

static int compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

static unsigned sorts(void)
{
	int numbers[3000];
	unsigned sum = 0;

	for (int i = 0; i < 3000; i++)
		numbers[i] = i * 7919 % 3001;
	qsort(numbers, 3000, sizeof(numbers[0]), compare);
	for (int i = 0; i < 3000; i++)
		sum = sum * 31 + (unsigned)numbers[i];
	return sum;
}

static NOINLINE int leap(jmp_buf back, int n)
{
	if (n > 3)
		longjmp(back, n);
	return leap(back, n + 1) + 1;
}

static unsigned leaps(void)
{
	volatile unsigned sum = 0;

	for (volatile int i = 0; i < 100; i++) {
		jmp_buf back;

		if (!setjmp(back))
			leap(back, i % 3);
		sum += spin(i);
	}
	return sum;
}

/* What the library has in assembler, and formatted numbers, of floats too. */
static unsigned copies(void)
{
	char text[200], buffer[20000], *end;
	unsigned sum = 0;

	for (int i = 1; i < 200; i++) {
		memset(buffer, 'a' + i % 20, sizeof(buffer));
		memmove(buffer + i, buffer, sizeof(buffer) / 2);
		buffer[sizeof(buffer) - 1 - i] = '\0';
		snprintf(text, sizeof(text), "%d %.12f %zu", i, 1.0 / i, strlen(buffer));
		sum = sum * 31 + (unsigned)(strtod(strchr(text, ' '), &end) * 1e9) + (unsigned)strtol(end, NULL, 10);
	}
	return sum;
}

static unsigned allocates(void)
{
	void *blocks[64] = { NULL };
	unsigned sum = 0;

	for (unsigned i = 0; i < 4000; i++) {
		free(blocks[i % 64]);
		blocks[i % 64] = malloc(i * 37 % 5000 + 1);
		memset(blocks[i % 64], (int)i, i * 37 % 5000 + 1);
		sum += *(unsigned char *)blocks[i % 64];
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	return sum;
}

/* Its bytes may be written over by as many that do as much. */
NOINLINE unsigned patched(unsigned n)
{
	__asm__ volatile(".globl patch_here\npatch_here: nop; nop" ::);
	return n % 3 ? n : n * 7;
}

static unsigned runs_patched(void)
{
	return patched(5) + patched(6);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static unsigned sleeps(void)
{
	const struct timespec time = { 0, 3000000 };

	check(!nanosleep(&time, NULL), "nanosleep");
	return 0;
}

static int are_killed;

static unsigned polls(void)
{
	struct epoll_event event;
	const int fd = epoll_create1(0);

	check(!poll(NULL, 0, 3), "poll");
	check(!epoll_wait(fd, &event, 1, 3) || (are_killed && errno == EINTR), "epoll_wait");
	check(!close(fd), "close");
	return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static unsigned take_turns(int own)
{
	struct timespec limit;

	pthread_mutex_lock(&mutex);
	while (turn != own && !is_over) {
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
		pthread_cond_timedwait(&changed, &mutex, &limit);
	}
	turn = !own;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&mutex);
	return spin(100);
}

static unsigned takes_turns(void)
{
	return take_turns(0);
}

static unsigned takes_other_turns(void)
{
	return take_turns(1);
}

/* It sleeps in one call as long as the program runs. */
static int pipe_ends[2];

static unsigned reads(void)
{
	char byte = 0;

	check(read(pipe_ends[0], &byte, 1) == 1 && byte == '+', "read");
	return 0;
}

/* ---- threads, children, signals -------------------------------------------------------------- */

static void *short_thread(void *n)
{
	return (void *)(long)spin((unsigned)(long)n);
}

static unsigned makes_threads(void)
{
	pthread_t threads[4];
	unsigned sum = 0;
	void *result;

	for (long i = 0; i < 4; i++)
		check(!pthread_create(&threads[i], NULL, short_thread, (void *)(i * 1000)), "pthread_create");
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		sum += (unsigned)(long)result;
	}
	usleep(500);
	return sum;
}

static unsigned forks(void)
{
	const pid_t child = fork();
	int status;

	check(child >= 0, "fork");
	if (!child)
		_exit(spin(1000) % 100);
	check(waitpid(child, &status, 0) == child && WIFEXITED(status), "waitpid");
	usleep(5000);
	return (unsigned)WEXITSTATUS(status);
}

static volatile unsigned rung;

static void on_timer(int signal)
{
	int saved = errno;

	rung = spin(3000) ^ (unsigned)choose(signal, 5);
	errno = saved;
}

/* Of this thread alone: the others have the signal blocked. */
static unsigned is_rung(void)
{
	const unsigned sum = spin(300000) + (unsigned)fib(15);

	return sum + (rung ? rung : (spin(3000) ^ (unsigned)choose(SIGALRM, 5)));
}

static pthread_t held_up_thread;
static volatile int is_held_up;

static void stay(int signal)
{
	(void)signal;
	is_held_up = 1;
	while (!is_over)
		usleep(10000);
}

NOINLINE void wait_for_stay(void)
{
	for (unsigned n = 0; !is_held_up; n++)
		BARRIER(n);
}

/* A handler that has interrupted it does not return before the end. */
static unsigned lingers(void)
{
	signal(SIGUSR1, stay);
	held_up_thread = pthread_self();
	wait_for_stay();
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	unsigned (*work)(void);
	int is_with_signals, is_extra;
} kinds[] = {
	{ "spins", spins },
	{ "recurses", recurses },
	{ "chooses", chooses },
	{ "sorts", sorts },
	{ "leaps", leaps },
	{ "copies", copies },
	{ "allocates", allocates },
	{ "sleeps", sleeps },
	{ "polls", polls },
	{ "turns", takes_turns },
	{ "turns", takes_other_turns },
	{ "reads", reads },
	{ "threads", makes_threads },
	{ "forks", forks },
	{ "signals", is_rung, 1 },
	{ "patched", runs_patched },
	{ "lingers", lingers, .is_extra = 1 },
};

static void *run(void *data)
{
	const struct kind *kind = data;
	unsigned expected;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(kind->is_with_signals ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
	expected = kind->work();
	while (!is_over)
		check(kind->work() == expected || is_over, kind->name);
	return NULL;
}

static int is_named(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const struct itimerval timer = { { 0, 5000 }, { 0, 5000 } };
	pthread_t threads[sizeof(kinds) / sizeof(kinds[0])];
	size_t n = 0;
	sigset_t set;
	char byte;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	check(!pipe(pipe_ends), "pipe");
	are_killed = is_named("killed", argc, argv);
	if (!is_named("signals", argc, argv)) {
		signal(SIGALRM, on_timer);
		setitimer(ITIMER_REAL, &timer, NULL);
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (is_named(kinds[i].name, argc, argv) == kinds[i].is_extra)
			check(!pthread_create(&threads[n++], NULL, run, (void *)&kinds[i]), "pthread_create");
	if (is_named("lingers", argc, argv)) {
		while (!held_up_thread)
			usleep(1000);
		usleep(100000);
		pthread_kill(held_up_thread, SIGUSR1);
		while (!is_held_up)
			usleep(1000);
	}
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	is_over = 1;
	check(write(pipe_ends[1], "++", 2) == 2, "write");
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("all is right\n");
	return 0;
}
