/*
 * numbered [-t THREADS] [-p PAUSE_US] [-f]
 *
 * THREADS (3) threads make calls with numbers, getpgid(THREAD + n) with n from 1 on, one each PAUSE_US (1000)
 * microseconds, until the end of stdin. With -f each makes a child now and then that makes CHILD_CALLS of CHILD + n,
 * and a thread that makes as many of BRIEF + n. It checks how they end; bytes go through a pipe. Then prints the last n
 * of each thread, by its id.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "target.h"

enum { THREAD = 1000000000, BRIEF = 1200000000, CHILD = 1500000000, CHILD_CALLS = 5, MAX_THREADS = 512, EACH = 16 };

static atomic_bool stop;
static bool forks;
static long pause_us = 1000;
static struct {
	pthread_t thread;
	pid_t tid;
	int last;
} threads[MAX_THREADS];

static void call(int number)
{
	CHECK(syscall(SYS_getpgid, number) == -1 && errno == ESRCH);
}

static void call_some(int base)
{
	for (int i = 1; i <= CHILD_CALLS; i++)
		call(base + i);
}

static void *be_brief(void *argument)
{
	call_some(BRIEF);
	return argument;
}

static void make_child(int n)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		call_some(CHILD);
		_exit(n & 0x7f);
	}
	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (n & 0x7f));
}

static void make_thread(void)
{
	pthread_t thread;
	void *result = NULL;

	CHECK(!pthread_create(&thread, NULL, be_brief, threads));
	CHECK(!pthread_join(thread, &result) && result == threads);
}

static void pass_byte(int n)
{
	unsigned char byte = (unsigned char)n, got = (unsigned char)~byte;
	int fds[2];

	CHECK(!pipe(fds));
	CHECK(write(fds[1], &byte, 1) == 1);
	CHECK(read(fds[0], &got, 1) == 1 && got == byte);
	close(fds[0]);
	close(fds[1]);
}

static void *run(void *argument)
{
	size_t i = (size_t)(uintptr_t)argument;
	int n = 0;

	threads[i].tid = (pid_t)syscall(SYS_gettid);
	while (!stop) {
		call(THREAD + ++n);
		pass_byte(n);
		if (forks && n % EACH == (int)i % EACH) {
			make_child(n);
			make_thread();
		}
		usleep((useconds_t)pause_us);
	}
	threads[i].last = n;
	return NULL;
}

int main(int argc, char **argv)
{
	size_t n = 3;
	int option;
	char byte;

	while ((option = getopt(argc, argv, "t:p:f")) != -1) {
		if (option == 't')
			n = (size_t)atoi(optarg);
		else if (option == 'p')
			pause_us = atol(optarg);
		else if (option == 'f')
			forks = true;
		else
			return 2;
	}
	CHECK(n > 0 && n <= MAX_THREADS);
	for (size_t i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i].thread, NULL, run, (void *)(uintptr_t)i));
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	stop = true;
	for (size_t i = 0; i < n; i++)
		CHECK(!pthread_join(threads[i].thread, NULL));
	for (size_t i = 0; i < n; i++)
		printf("%s\"%d\": %d", i ? ", " : "{", threads[i].tid, threads[i].last);
	puts("}");
	return 0;
}
