/*
 * lines [-f] N
 *
 * Calls work_a() and work_b() N times for each line on stdin and prints "done" and how often each was called so far.
 * With -f it makes a child when the first line comes and prints "child PID". The child calls them all the time, until
 * the parent tells it to end when stdin ends.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "target.h"
#include "work.h"

static volatile sig_atomic_t ended;

static void on_sigterm(int number_of_signal)
{
	ended = 1;
}

static void call(long i)
{
	CHECK(work_a((int)i, i * 3 + 7) == expect_a((int)i, i * 3 + 7));
	CHECK(work_b(i, 5) == expect_b(i, 5));
}

static pid_t make_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	for (long i = 0; !ended; i++) {
		call(i);
		usleep(100);
	}
	_exit(0);
}

static void end_child(pid_t pid)
{
	int status = -1;

	CHECK(kill(pid, SIGTERM) == 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	if (status)
		dprintf(STDERR_FILENO, "the child ended with wait status 0x%x\n", (unsigned int)status);
	CHECK(status == 0);
}

int main(int argc, char **argv)
{
	bool forks = argc > 2 && !strcmp(argv[1], "-f");
	long n, calls = 0;
	pid_t child = 0;
	char c;

	if (argc != 2 + forks)
		return 2;
	n = number(argv[argc - 1]);
	signal(SIGTERM, on_sigterm);
	say("ready\n");
	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (forks && !child) {
			child = make_child();
			printf("child %d\n", child);
		}
		for (long i = 0; i < n; i++)
			call(calls++);
		printf("done %ld\n", calls);
		fflush(stdout);
	}
	if (child)
		end_child(child);
	return 0;
}
