/* busy THREADS: each calls getppid and does nothing else, until the end of stdin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *call(void *nothing)
{
	for (;;)
		syscall(SYS_getppid);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte;

	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_create(&thread, NULL, call, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
}
