/*
 * Makes a known number of system calls: in threads, in children, and with errors. With an argument: has threads that
 * sleep in calls until a line comes, makes ten calls of getppid then, and wakes them up with the next.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, CHILDREN = 3, CALLS = 200, FAILED = 20 };

static void on_signal(int number)
{
	syscall(SYS_getuid);
}

static void *work(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < FAILED; i++)
		close(-1);
	return unused;
}

static int pipes[3][2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *sleep_in_read(void *unused)
{
	char byte;

	return (void *)(read(pipes[0][0], &byte, 1) == 1 && byte == 'x');
}

static void *sleep_in_poll(void *unused)
{
	struct pollfd fd = { .fd = pipes[1][0], .events = POLLIN };

	return (void *)(poll(&fd, 1, -1) == 1 && fd.revents == POLLIN);
}

static void *sleep_in_poll_with_limit(void *unused)
{
	struct pollfd fd = { .fd = pipes[2][0], .events = POLLIN };

	return (void *)(poll(&fd, 1, 3600000) == 1 && fd.revents == POLLIN);
}

static void *sleep_in_futex(void *unused)
{
	return (void *)(!pthread_mutex_lock(&mutex) && !pthread_mutex_unlock(&mutex));
}

static int sleep_until_told(void)
{
	void *(*const ways[])(void *) = { sleep_in_read, sleep_in_poll, sleep_in_poll_with_limit, sleep_in_futex };
	pthread_t threads[4];
	void *is_right;
	int woken = 0;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 3; i++)
		if (pipe(pipes[i]))
			abort();
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, ways[i], NULL))
			abort();
	puts("ready");
	fflush(stdout);
	while (getchar() != '\n')
		;
	for (int i = 0; i < 10; i++)
		syscall(SYS_getppid);
	puts("called");
	fflush(stdout);
	while (getchar() != '\n')
		;
	for (int i = 0; i < 3; i++)
		if (write(pipes[i][1], "x", 1) != 1)
			abort();
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &is_right);
		woken += is_right != NULL;
	}
	printf("%d woken\n", woken);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc > 1)
		return sleep_until_told();
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child) {
			work(NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child)
			abort();
	}
	return 0;
}
