/* A thread that is not the first executes another program, while the others wait. */
#include <pthread.h>
#include <unistd.h>

static void *wait_for_end(void *argument)
{
	pause();
	return NULL;
}

static void *execute(void *argument)
{
	char *words[] = { "true", NULL };

	usleep(100000); /* the others wait */
	execv("/bin/true", words);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_end, NULL) || pthread_create(&thread, NULL, execute, NULL))
		return 1;
	pause();
	return 2;
}
