#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) int work(int x)
{
	__asm__ volatile("" ::: "memory");
	return x * 2 + 1;
}
static void *body(void *data)
{
	long sum = 0;
	for (int i = 0; i < 500; i++)
		sum += work(i);
	return (void *)sum;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	void *result;
	long sum = 0;
	pthread_create(&thread, 0, body, 0);
	for (int i = 0; i < 500; i++) {
		char *p = malloc(1000 + i);
		memset(p, i, 1000);
		sum += work(p[0] & 0);
		free(p);
	}
	pthread_join(thread, &result);
	printf("%ld %ld\n", sum, (long)result);
	if (argc > 1) {
		fflush(stdout);
		getchar();
		for (int i = 0; i < 1000; i++)
			sum += work(i);
		printf("%ld\n", sum);
	}
	return 5;
}
