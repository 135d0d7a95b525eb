/*
 * calls THREADS CALL=N...: ns of a system call, as a program sees it that makes N of them, one after the other, on its
 * first thread; the others, THREADS - 1, sleep. CALL is getppid, read or write, of one byte. Prints "CALL NS" a line,
 * on the clock: what a tracer does on another CPU meanwhile is waited for. Without a CALL it says "ready" with its
 * process id, and waits for the end of its input.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 100

static int zero, null;

static void call_getppid(void)
{
	syscall(SYS_getppid);
}

static void call_read(void)
{
	char byte;

	if (read(zero, &byte, 1) != 1)
		abort();
}

static void call_write(void)
{
	if (write(null, "x", 1) != 1)
		abort();
}

static const struct {
	const char *name;
	void (*make)(void);
} calls[] = { { "getppid", call_getppid }, { "read", call_read }, { "write", call_write } };

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *sleep_on(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (;;)
		pause();
	return NULL;
}

static void make_threads(long n)
{
	pthread_attr_t attributes;
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	pthread_barrier_init(&barrier, NULL, (unsigned int)n + 1);
	for (long i = 0; i < n; i++)
		if (pthread_create(&thread, &attributes, sleep_on, &barrier))
			abort();
	pthread_barrier_wait(&barrier);
	usleep(100000); /* they go to sleep */
}

static int measure(char *words)
{
	char *equals = strchr(words, '=');
	const long n = equals ? atol(equals + 1) : 0;

	if (n <= 0)
		return 2;
	*equals = '\0';
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		double begin;

		if (strcmp(calls[i].name, words))
			continue;
		for (int j = 0; j < WARM_UP; j++)
			calls[i].make();
		begin = now_ns();
		for (long j = 0; j < n; j++)
			calls[i].make();
		printf("%s %.1f\n", words, (now_ns() - begin) / (double)n);
		return 0;
	}
	return 2;
}

static void wait_for_the_end(void)
{
	char byte;

	printf("ready %d\n", getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

int main(int argc, char **argv)
{
	int status = argc < 2 ? 2 : 0;

	zero = open("/dev/zero", O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	if (argc > 1 && atol(argv[1]) > 1)
		make_threads(atol(argv[1]) - 1);
	if (argc == 2)
		wait_for_the_end();
	for (int i = 2; i < argc && !status; i++)
		status = measure(argv[i]);
	fflush(stdout);
	_exit(status);
}
