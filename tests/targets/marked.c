/*
 * marked [-t THREADS] [-w ROUNDS] [-n ROUNDS] [-l FILE] [-p PAUSE_US] [-f N] [-s]
 *
 * THREADS (1) threads pass markers with arguments of every type, around computations that they check. Each round has a
 * number, from which all arguments follow. Runs until SIGTERM or SIGINT, or for -n ROUNDS of each thread. With -w it
 * runs ROUNDS of each thread for each line that it reads, and then prints "done". At its end it prints how often each
 * marker was passed, and how often the argument of `costly` was evaluated. -l writes what is passed to FILE, one JSON
 * object a marker (one thread only). PAUSE_US (0) microseconds of sleep come after each round. -f forks N children at
 * the end of each round with a number that 100 divides; each does ten rounds and must end well. -s (marked-toggling):
 * another thread turns markers on and off all the time, with a probe that checks what it gets; at the end they are off.
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include <kymo/marker.h>
#ifdef TOGGLES
#include <kymo/marker_probe.h>
#endif

#include "target.h"

#define MAX_THREADS 64
#define TEXT_MAX 300

/* As PROBED, for what is static. */
#ifdef __clang__
#define OWN __attribute__((noinline)) static
#else
#define OWN __attribute__((noipa)) static
#endif

static struct {
	_Atomic uint64_t rounds, handled, costly, copies, looped, children;
} counts;

static atomic_bool stop;
static long pause_us, n_children;
static FILE *record;
static char alphabet[TEXT_MAX + 1];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	if (!record)
		return;
	va_start(args, format);
	vfprintf(record, format, args);
	va_end(args);
}

/* ---- one marker a function ------------------------------------------------------------------- */

OWN void mark_nothing(long i)
{
	MARK(nothing, MARK_NOARGS);
	note("{\"name\": \"nothing\"}\n");
}

OWN void mark_small(long i)
{
	char c = (char)('a' + i % 26);
	short h = (short)-i;
	unsigned char b = (unsigned char)i;

	MARK(small, "c=%c h=%hd b=%hhu flag=%d", c, h, b, i % 3 == 0);
	note("{\"name\": \"small\", \"c\": %d, \"h\": %d, \"b\": %d, \"flag\": %d}\n", c, h, b, i % 3 == 0);
}

OWN void mark_ints(long i)
{
	int n = (int)-i * 7;
	unsigned int u = 4000000000u + (unsigned int)i, x = 0xfffffff0u - (unsigned int)i;

	MARK(ints, "n=%d u=%u x=%x", n, u, x);
	note("{\"name\": \"ints\", \"n\": %d, \"u\": %u, \"x\": %u}\n", n, u, x);
}

OWN void mark_longs(long i)
{
	long l = -(i << 33);
	unsigned long ul = ~0ul - (unsigned long)i;
	long long ll = -i;
	size_t z = (size_t)i << 40;

	MARK(longs, "l=%ld ul=%lu ux=%lx ll=%lld z=%zu", l, ul, ul, ll, z);
	note("{\"name\": \"longs\", \"l\": %ld, \"ul\": %lu, \"ux\": %lu, \"ll\": %lld, \"z\": %zu}\n", l, ul, ul, ll,
	     z);
}

OWN void mark_pointers(long i)
{
	const void *p = &alphabet[i % TEXT_MAX];

	MARK(pointers, "p=%p null=%p", p, (void *)0);
	note("{\"name\": \"pointers\", \"p\": %lu, \"null\": 0}\n", (unsigned long)(uintptr_t)p);
}

OWN void mark_reals(long i)
{
	double d = (double)-i / 3.0, huge = 1e300 * (double)i;
	float f = (float)i * 0.5f;

	MARK(reals, "d=%f f=%g huge=%e", d, (double)f, huge);
	note("{\"name\": \"reals\", \"d\": %.17g, \"f\": %.17g, \"huge\": %.17g}\n", d, (double)f, huge);
}

/* Of 0 to 300 bytes, and none at all. */
static const char *text_of(long i)
{
	return i % (TEXT_MAX + 2) == TEXT_MAX + 1 ? NULL : alphabet + TEXT_MAX - i % (TEXT_MAX + 2);
}

OWN void mark_text(long i)
{
	const char *s = text_of(i);

	MARK(text, "s=%s", s);
	note("{\"name\": \"text\", \"s\": \"%.255s\"}\n", s ? s : "(null)");
}

/* Names that the format does not give are made. */
OWN void mark_mixed(long i)
{
	const char *s = text_of(i), *t = text_of(i + 100);
	char buffer[16];
	double d = (double)i * 0.25;

	snprintf(buffer, sizeof(buffer), "<%ld>", i);
	MARK(mixed, "%d %s %f %s %x %s %u %ld", (int)i, s, d, buffer, (unsigned int)i * 3u, t, 5u, -i);
	note("{\"name\": \"mixed\", \"arg1\": %d, \"arg2\": \"%.255s\", \"arg3\": %.17g, \"arg4\": \"%s\", \"arg5\": "
	     "%u, "
	     "\"arg6\": \"%.255s\", \"arg7\": 5, \"arg8\": %ld}\n",
	     (int)i, s ? s : "(null)", d, buffer, (unsigned int)i * 3u, t ? t : "(null)", -i);
}

OWN void mark_eight(long a, int b, long c, int d, long e, int f, long g, int h)
{
	MARK(eight, "a=%ld b=%d c=%ld d=%d e=%ld f=%d g=%ld h=%d", a, b, c, d, e, f, g, h);
	note("{\"name\": \"eight\", \"a\": %ld, \"b\": %d, \"c\": %ld, \"d\": %d, \"e\": %ld, \"f\": %d, \"g\": %ld, "
	     "\"h\": %d}\n",
	     a, b, c, d, e, f, g, h);
}

/* ---- copies ---------------------------------------------------------------------------------- */

__attribute__((always_inline)) static inline void mark_copy(long i, int where)
{
	MARK(copies, "i=%ld where=%d", i, where);
	note("{\"name\": \"copies\", \"i\": %ld, \"where\": %d}\n", i, where);
	counts.copies++;
}

OWN void mark_copies(long i)
{
	mark_copy(i, 1);
	if (i % 2)
		mark_copy(-i, 2);
	mark_copy(i * 2, 3);
}

/* Unrolled: each turn has its own copy. */
OWN long mark_looped(long i)
{
	long sum = 0;

#ifndef __clang__ /* which unrolls none with an asm goto in it */
#pragma GCC unroll 8
#endif
	for (int k = 0; k < 8; k++) {
		MARK(looped, "k=%d", k);
		sum += i ^ k;
	}
	counts.looped += 8;
	for (int k = 0; k < 8; k++)
		note("{\"name\": \"looped\", \"k\": %d}\n", k);
	return sum;
}

/* ---- what may not be disturbed --------------------------------------------------------------- */

OWN int mark_costly(long i)
{
	MARK(costly, "evaluations=%d", (int)++counts.costly);
	return (int)i + 1;
}

static void on_usr1(int number_of_signal)
{
	int saved = errno;

	MARK(handled, "signal=%d name=%s", number_of_signal, "USR1");
	counts.handled++;
	errno = saved;
}

/* Much that is alive across markers: in registers, on the stack, in vector registers, in flags and below the stack
 * pointer. */
#define COMPUTE(name, mark) \
	OWN double name(long a, long b, double x, double y) \
	{ \
		long c = a * 3, d = b ^ a, e = a + b, f = a - b, g = a << 3, h = ~b; \
		double z = x * y, w = x - y; \
		volatile long kept[4] = { a, b, c, d }; \
\
		for (int i = 0; i < 3; i++) { \
			c += d ^ i, d = d * 5 + e, e ^= f, f += g, g -= h, h = (h << 1) | (h < 0); \
			mark; \
			z += w * i, w -= x, x += 0.5 * y; \
			kept[i] += c; \
		} \
		return z + w + x + y + \
		       (double)((c ^ d ^ e ^ f ^ g ^ h ^ kept[0] ^ kept[1] ^ kept[2] ^ kept[3]) & 0xffff); \
	}
COMPUTE(compute_marked, MARK(alive, "c=%ld e=%ld z=%f i=%d", c, e, z, i))
COMPUTE(compute_marked_text, MARK(alive_text, "e=%ld s=%s z=%f", e, alphabet + (e & 127), z))
COMPUTE(compute_bare, __asm__ volatile(""))

static void compute(long i)
{
	double bare = compute_bare(i, -i, (double)i, 2.5);

	CHECK(compute_marked(i, -i, (double)i, 2.5) == bare);
	CHECK(compute_marked_text(i, -i, (double)i, 2.5) == bare);
}

/* ---- toggling -------------------------------------------------------------------------------- */

#ifdef TOGGLES
static atomic_long toggles, calls;

static void on_eight(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	long a = va_arg(arguments, long);
	int b = va_arg(arguments, int);
	long c = va_arg(arguments, long);

	CHECK(data == &toggles && marker->n_sites >= 1 && b == (int)-a && c == a << 32);
	CHECK(va_arg(arguments, int) == 4 && va_arg(arguments, long) == -5 && va_arg(arguments, int) == 6);
	calls++;
}

static void on_any(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	calls++;
}

static void *toggle(void *arg)
{
	static const char *const names[] = { "eight", "text", "looped", "alive", "ints" };

	for (long i = 0; !stop; i++) {
		const char *name = names[i % 5];
		kymo_marker_probe *probe = i % 5 ? on_any : on_eight;

		CHECK(kymo_marker_set_probe(name, NULL, probe, &toggles, KYMO_MARKER_CALL) == 0);
		if (i % 7 == 0)
			sched_yield();
		CHECK(kymo_marker_disable_probe(name, probe, &toggles, KYMO_MARKER_CALL) == 0);
		toggles++;
	}
	return NULL;
}
#endif

/* ---- rounds ---------------------------------------------------------------------------------- */

OWN void do_round(long i)
{
	mark_nothing(i);
	mark_small(i);
	mark_ints(i);
	mark_longs(i);
	mark_pointers(i);
	mark_reals(i);
	mark_text(i);
	mark_mixed(i);
	mark_eight(i, (int)-i, i << 32, 4, -5, 6, i * i, (int)i);
	mark_copies(i);
	CHECK(mark_looped(i) == (i ^ 0) + (i ^ 1) + (i ^ 2) + (i ^ 3) + (i ^ 4) + (i ^ 5) + (i ^ 6) + (i ^ 7));
	CHECK(mark_costly(i) == (int)i + 1);
	compute(i);
	if (i % 16 == 0)
		CHECK(raise(SIGUSR1) == 0);
	counts.rounds++;
}

static void fork_child(long i)
{
	int status = 0;
	pid_t pid = fork(), ended;

	CHECK(pid >= 0);
	if (pid == 0) {
		record = NULL;
		for (long k = 0; k < 10; k++)
			do_round(i + k);
		_exit(0);
	}
	do
		ended = waitpid(pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	CHECK(ended == pid && status == 0);
	counts.children++;
}

static void pause_for(long us)
{
	struct timespec left = { us / 1000000, us % 1000000 * 1000 };

	while (us && nanosleep(&left, &left) < 0 && !stop)
		CHECK(errno == EINTR);
}

struct task {
	long first, n; /* n 0: until told to stop */
};

static void *work(void *arg)
{
	const struct task *task = arg;

	for (long i = task->first; !stop && (!task->n || i < task->first + task->n); i++) {
		do_round(i);
		for (long k = 0; k < n_children && i % 100 == 0; k++)
			fork_child(i);
		pause_for(pause_us);
	}
	return NULL;
}

/* One thread is the initial one. */
static void work_all(long n_threads, struct task task)
{
	pthread_t threads[MAX_THREADS];

	for (long i = 1; i < n_threads; i++)
		CHECK(pthread_create(&threads[i], NULL, work, &task) == 0);
	work(&task);
	for (long i = 1; i < n_threads; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

static void on_end(int number_of_signal)
{
	stop = true;
}

static void print_counts(void)
{
	static const char *const often[] = { "nothing", "small", "ints",  "longs", "pointers",
					     "reals",   "text",  "mixed", "eight" };

	printf("{");
	for (size_t i = 0; i < sizeof(often) / sizeof(often[0]); i++)
		printf("\"%s\": %lu, ", often[i], counts.rounds);
	printf("\"copies\": %lu, \"looped\": %lu, \"costly\": %lu, \"alive\": %lu, \"alive_text\": %lu, ",
	       counts.copies, counts.looped, counts.rounds, 3 * counts.rounds, 3 * counts.rounds);
	printf("\"handled\": %lu, \"evaluations\": %lu, \"children\": %lu}\n", counts.handled, counts.costly,
	       counts.children);
}

int main(int argc, char **argv)
{
	long n_threads = 1, waited = 0;
	struct task task = { 0, 0 };
	int option;
#ifdef TOGGLES
	pthread_t toggler;
	bool toggles_itself = false;
#endif

	while ((option = getopt(argc, argv, "t:w:n:l:p:f:s")) != -1) {
		switch (option) {
		case 't':
			n_threads = number(optarg);
			break;
		case 'w':
			waited = number(optarg);
			break;
		case 'n':
			task.n = number(optarg);
			break;
		case 'l':
			record = fopen(optarg, "w");
			CHECK(record);
			break;
		case 'p':
			pause_us = number(optarg);
			break;
		case 'f':
			n_children = number(optarg);
			break;
#ifdef TOGGLES
		case 's':
			toggles_itself = true;
			break;
#endif
		default:
			return 2;
		}
	}
	CHECK(n_threads >= 1 && n_threads <= MAX_THREADS && (!record || n_threads == 1));
	for (size_t i = 0; i < TEXT_MAX; i++)
		alphabet[i] = (char)("abcdefghijklmnopqrstuvwxyz0123456789 .,;:-_+*/(){}[]<>|&%$#@!?='"[i % 64]);
	signal(SIGUSR1, on_usr1);
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
#ifdef TOGGLES
	if (toggles_itself)
		CHECK(pthread_create(&toggler, NULL, toggle, NULL) == 0);
#endif
	say("ready\n");
	if (waited) {
		char c;

		task.n = waited;
		while (read(STDIN_FILENO, &c, 1) == 1) {
			work_all(n_threads, task);
			task.first += waited;
			say("done\n");
		}
	} else {
		work_all(n_threads, task);
	}
#ifdef TOGGLES
	stop = true;
	if (toggles_itself)
		CHECK(pthread_join(toggler, NULL) == 0 && toggles > 0 && calls > 0);
#endif
	if (record)
		fclose(record);
	print_counts();
	return 0;
}
