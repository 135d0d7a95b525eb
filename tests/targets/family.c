/*
 * family exec N | storm [N] | stops | wakes | daemon
 *
 * What processes do to each other and to their threads, each checked by the process that did it; calls work_a() on the
 * way and prints how often. exec: executes itself N times, from a thread beside others, after half of which the first
 * thread has ended already. storm: four threads make N (400) threads each, one after another. Meanwhile another makes
 * three children for eight of one's threads; a third of these are killed at once. stops: a child with threads is
 * stopped and continued by job control, and its parent is told each time. wakes: waits in epoll_wait() while signals
 * come that it ignores. daemon: a grandchild in a session of its own outlives the others.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "target.h"
#include "work.h"

static _Atomic long *calls; /* shared with all children */

static void call(long n)
{
	for (long i = 0; i < n; i++) {
		CHECK(work_a((int)i, i * 7) == expect_a((int)i, i * 7));
		++*calls;
	}
}

static void make_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, run, arg) == 0);
	CHECK(pthread_detach(thread) == 0);
}

static void *doze(void *arg)
{
	for (;;)
		usleep(1000);
	return arg;
}

static int wait_for(pid_t pid, int options)
{
	int status = -1;

	while (waitpid(pid, &status, options) < 0)
		CHECK(errno == EINTR);
	return status;
}

/* ---- exec ------------------------------------------------------------------------------------ */

static char *next[] = { (char *)"family", (char *)"exec", NULL, NULL };

static void *become_next(void *arg)
{
	call(5);
	execv("/proc/thread-self/exe", next);
	CHECK(!"executed");
	return arg;
}

static int exec_often(long n)
{
	static char text[32];

	if (!n) {
		say("last\n");
		return 7;
	}
	snprintf(text, sizeof(text), "%ld", n - 1);
	next[2] = text;
	for (int i = 0; i < 6; i++)
		make_thread(doze, NULL);
	make_thread(become_next, NULL);
	if (n % 2)
		pthread_exit(NULL);
	for (;;)
		pause();
}

/* ---- storm ----------------------------------------------------------------------------------- */

static void *call_once(void *arg)
{
	call(1);
	return arg;
}

static void *make_threads(void *arg)
{
	for (int i = 0; i < *(const int *)arg; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, call_once, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	return arg;
}

static void make_child(int i)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (i % 3 == 0)
			for (;;)
				pause();
		call(3);
		_exit(i % 5);
	}
	CHECK(pid > 0);
	if (i % 3 == 0)
		CHECK(kill(pid, SIGKILL) == 0);
	status = wait_for(pid, 0);
	CHECK(i % 3 ? WIFEXITED(status) && WEXITSTATUS(status) == i % 5
		    : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int storm(int n)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, make_threads, &n) == 0);
	for (int i = 0; i < n * 3 / 8; i++)
		make_child(i);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return 3;
}

/* ---- stops ----------------------------------------------------------------------------------- */

static int stops(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		for (int i = 0; i < 4; i++)
			make_thread(doze, NULL);
		for (;;)
			pause();
	}
	CHECK(setpgid(pid, pid) == 0); /* SIGTSTP does nothing in a group that has no parent in its session */
	usleep(20000);
	for (int i = 0; i < 20; i++) {
		int signal = i % 2 ? SIGSTOP : SIGTSTP;

		CHECK(kill(pid, signal) == 0);
		status = wait_for(pid, WUNTRACED);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == signal);
		CHECK(kill(pid, SIGCONT) == 0);
		status = wait_for(pid, WCONTINUED);
		CHECK(WIFCONTINUED(status));
		call(1);
	}
	CHECK(kill(pid, SIGTERM) == 0);
	status = wait_for(pid, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	return 0;
}

/* ---- wakes ----------------------------------------------------------------------------------- */

static int wakes(void)
{
	int epoll = epoll_create1(0);

	signal(SIGUSR1, SIG_IGN);
	for (int i = 0; i < 20; i++) {
		struct epoll_event event;
		pid_t parent = getpid(), pid = fork();

		if (!pid) {
			for (int k = 0; k < 3; k++) {
				usleep(2000);
				kill(parent, k == 1 ? SIGUSR1 : SIGWINCH);
			}
			_exit(0); /* SIGCHLD */
		}
		CHECK(epoll_wait(epoll, &event, 1, 60) == 0);
		CHECK(wait_for(pid, 0) == 0);
		call(1);
	}
	return 0;
}

/* ---- daemon ---------------------------------------------------------------------------------- */

static int leave_daemon(void)
{
	int first[2]; /* whose write end only the first process has */
	pid_t pid;
	char c;

	CHECK(pipe(first) == 0);
	pid = fork();
	if (pid) {
		CHECK(wait_for(pid, 0) == 0);
		say("left\n");
		return 5;
	}
	CHECK(close(first[1]) == 0);
	CHECK(setsid() > 0);
	if (fork())
		_exit(0);
	CHECK(read(first[0], &c, 1) == 0);
	call(11);
	say("daemon\n");
	_exit(0);
}

int main(int argc, char **argv)
{
	int status = 2;

	calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(calls != MAP_FAILED);
	if (argc < 2 || argc > 3)
		return 2;
	if (argc == 3 && !strcmp(argv[1], "exec"))
		return exec_often(number(argv[2]));
	if (argc != 2 && strcmp(argv[1], "storm"))
		return 2;
	if (!strcmp(argv[1], "storm"))
		status = storm(argc > 2 ? (int)number(argv[2]) : 400);
	else if (!strcmp(argv[1], "stops"))
		status = stops();
	else if (!strcmp(argv[1], "wakes"))
		status = wakes();
	else if (!strcmp(argv[1], "daemon"))
		status = leave_daemon();
	printf("{\"calls\": %ld}\n", *calls);
	return status;
}
