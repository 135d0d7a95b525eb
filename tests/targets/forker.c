/*
 * forker [-w] [-e] N
 *
 * Calls work_a() N times itself, and again in children. These are made by fork (ending by _exit and by exit), fork of a
 * second thread, vfork, posix_spawn and fork + exec. Each child checks its results. -w waits for a line on stdin first;
 * -e ends by executing itself, which calls work_a() N times more. Prints how many calls were made in which kind of
 * process.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "target.h"
#include "work.h"

extern char **environ;

/* Shared with all children, so that each can count. */
struct counts {
	_Atomic long parent, fork, fork_exit, thread_fork, vfork, spawn, exec;
};

static struct counts *counts;
static long n;
static char n_text[32];

static void call(_Atomic long *count)
{
	for (long i = 0; i < n; i++) {
		CHECK(work_a((int)i, i * 5) == expect_a((int)i, i * 5));
		(*count)++;
	}
}

static void wait_well(pid_t pid)
{
	int status = -1;

	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	if (status)
		dprintf(STDERR_FILENO, "a child ended with wait status 0x%x\n", (unsigned int)status);
	CHECK(status == 0);
}

static void fork_child(_Atomic long *count, void (*end)(int))
{
	pid_t pid = fork();

	if (pid == 0) {
		call(count);
		end(0);
	}
	wait_well(pid);
}

static void *fork_in_thread(void *arg)
{
	fork_child(&counts->thread_fork, _exit);
	return arg;
}

/* The child of a vfork runs in its parent's memory: what it calls is on the parent's stack and in its text. */
static __attribute__((noinline)) void vfork_child(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		call(&counts->vfork);
		_exit(0);
	}
	wait_well(pid);
}

static void spawn_child(void)
{
	char *argv[] = { (char *)"forker", (char *)"-c", n_text, NULL };
	pid_t pid = -1;

	CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) == 0);
	wait_well(pid);
	counts->spawn += n;
}

static void exec_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "forker", "-c", n_text, (char *)NULL);
		_exit(127);
	}
	wait_well(pid);
	counts->exec += n;
}

static void make_children(void)
{
	pthread_t thread;

	fork_child(&counts->fork, _exit);
	fork_child(&counts->fork_exit, exit);
	CHECK(pthread_create(&thread, NULL, fork_in_thread, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	vfork_child();
	spawn_child();
	exec_child();
}

int main(int argc, char **argv)
{
	int wait_first = 0, exec_self = 0, only_call = 0, option;

	while ((option = getopt(argc, argv, "wec")) != -1) {
		switch (option) {
		case 'w':
			wait_first = 1;
			break;
		case 'e':
			exec_self = 1;
			break;
		case 'c':
			only_call = 1;
			break;
		default:
			return 2;
		}
	}
	if (optind != argc - 1)
		return 2;
	n = number(argv[optind]);
	snprintf(n_text, sizeof(n_text), "%ld", n);
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(counts != MAP_FAILED);
	if (only_call) {
		call(&counts->parent);
		return 0;
	}
	say("ready\n");
	if (wait_first)
		wait_for_line();
	call(&counts->parent);
	make_children();
	call(&counts->parent);
	printf("{\"parent\": %ld, \"fork\": %ld, \"fork_exit\": %ld, \"thread_fork\": %ld, \"vfork\": %ld, "
	       "\"spawn\": %ld, \"exec\": %ld}\n",
	       counts->parent, counts->fork, counts->fork_exit, counts->thread_fork, counts->vfork, counts->spawn,
	       counts->exec);
	fflush(stdout);
	if (exec_self)
		execl("/proc/self/exe", "forker", "-c", n_text, (char *)NULL);
	return exec_self;
}
