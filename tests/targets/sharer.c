/*
 * sharer [-w] CHILDREN N
 *
 * Makes children by clone() that share its memory and are no threads of it: raw CLONE_VM, as old thread libraries have
 * it. Each calls work_a() N times, and so does the process itself. With -w it says "ready" when they are there, and all
 * of them wait for a line. At its end it prints how many calls there were.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "target.h"
#include "work.h"

#define MAX_CHILDREN 16
#define STACK 65536

static atomic_bool may_begin;
static long n;

/* Runs with its parent's thread pointer: nothing that writes to thread-local storage may be called. */
static int call(void *arg)
{
	while (!may_begin)
		usleep(1000);
	for (long i = 0; i < n; i++)
		CHECK(work_a((int)i, i * 3) == expect_a((int)i, i * 3));
	return 0;
}

static pid_t make_child(void)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	CHECK(stack != MAP_FAILED);
	pid = clone(call, stack + STACK, CLONE_VM | SIGCHLD, NULL);
	CHECK(pid > 0);
	return pid;
}

int main(int argc, char **argv)
{
	bool waits = argc == 4 && !strcmp(argv[1], "-w");
	pid_t pids[MAX_CHILDREN];
	long n_children;

	if (argc != 3 + waits)
		return 2;
	n_children = number(argv[1 + waits]);
	n = number(argv[2 + waits]);
	CHECK(n_children >= 0 && n_children <= MAX_CHILDREN);
	for (long i = 0; i < n_children; i++)
		pids[i] = make_child();
	if (waits) {
		say("ready\n");
		wait_for_line();
	}
	may_begin = true;
	call(NULL);
	for (long i = 0; i < n_children; i++) {
		int status;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
	printf("{\"calls\": %ld}\n", (n_children + 1) * n);
	return 0;
}
