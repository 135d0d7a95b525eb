/*
 * Three threads that make calls whose numbers are known. Before a byte at its standard input each makes getpgid() and
 * getsid() all the time, so that a tracer knows that it sees this thread. Then 500 getuid() and 300 getgid(), and the
 * end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool goes;

static void *work(void *argument)
{
	while (!goes) {
		syscall(SYS_getpgid, 0);
		syscall(SYS_getsid, 0);
		usleep(2000);
	}
	for (int i = 0; i < 500; i++) {
		syscall(SYS_getuid);
		if (i < 300)
			syscall(SYS_getgid);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[3];
	char byte;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	goes = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
