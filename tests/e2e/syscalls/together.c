/* Four threads end the process at once. */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static void *end(void *data)
{
	pthread_barrier_wait(&barrier);
	syscall(SYS_exit_group, 0);
	return data;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, end, NULL);
	end(NULL);
}
