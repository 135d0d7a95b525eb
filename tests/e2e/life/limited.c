/*
 * `limited` does what each line of its input says, and answers with "did N", N counted from 0:
 *
 *	atoi			50 calls of atoi()
 *	prctl A B C D E		the call
 *	handle			a handler of SIGSEGV, and a second in which a recorder may learn of it
 *
 * `limited ONE OTHER` forbids itself to read the time stamp counter, runs ONE, and then becomes OTHER.
 *
 * It reads no clock, which would be reading the counter: where processors keep the promise, that ends it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_fault(int signal)
{
	_exit(100 + signal);
}

__attribute__((noinline)) int obey(const char *line)
{
	int (*volatile call)(const char *) = atoi; /* it is inlined otherwise */
	long a, b, c, d, e;
	int sum = 0;

	for (int i = 0; !strncmp(line, "atoi", 4) && i < 50; i++)
		sum += call("123");
	if (sscanf(line, "prctl %ld %ld %ld %ld %ld", &a, &b, &c, &d, &e) == 5 && prctl((int)a, b, c, d, e))
		return -1;
	if (!strncmp(line, "handle", 6)) {
		if (signal(SIGSEGV, on_fault) == SIG_ERR)
			return -1;
		sleep(1);
	}
	return sum;
}

static int execute(char *one, char *other)
{
	char *path = other;
	pid_t child;

	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		return 1;
	child = fork();
	if (child)
		waitpid(child, NULL, 0);
	else
		path = one;
	execl(path, path, (char *)NULL);
	return 1;
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc == 3)
		return execute(argv[1], argv[2]);
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	for (int n = 0; fgets(line, sizeof(line), stdin); n++) {
		if (obey(line) < 0)
			return 1;
		printf("did %d\n", n);
	}
	return 0;
}
