/* Threads that print their ids and then wait until exit_group ends all of them. Each begins when the one before has
 * spoken. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int pipe_ends[2];

static void *work(void *argument)
{
	getuid();
	if (write(pipe_ends[1], "x", 1) != 1)
		return NULL;
	pause();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char byte;

	if (pipe(pipe_ends))
		return 1;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, work, NULL) || read(pipe_ends[0], &byte, 1) != 1)
			return 1;
	usleep(2000000); /* all wait, also where a thread gets no turn for a second */
	_exit(0);
}
