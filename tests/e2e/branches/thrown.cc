/* Ways out of calls, in clones: exceptions, also through qsort, leaps, threads that exit and that are canceled. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static int destroyed;

struct counted {
	~counted()
	{
		destroyed++;
	}
};

static NOINLINE int thrower(int n)
{
	counted here;

	if (!n)
		throw std::runtime_error("thrown");
	if (n % 7 == 3) {
		try {
			return thrower(n - 1) + 1;
		} catch (const std::logic_error &) {
			return 0;
		}
	}
	return thrower(n - 1) + 1;
}

static NOINLINE int rethrower(int n)
{
	try {
		return thrower(n);
	} catch (const std::exception &) {
		destroyed += 100;
		throw;
	}
}

static int exceptions()
{
	int sum = 0;

	for (int i = 0; i < 300; i++) {
		try {
			sum += i % 2 ? rethrower(i % 40) : thrower(i % 40);
		} catch (const std::runtime_error &error) {
			sum += error.what()[0];
		}
	}
	return sum;
}

static int compared;

static int compare(const void *a, const void *b)
{
	if (++compared % 20 == 0)
		throw compared;
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static int through_qsort()
{
	int numbers[50], sum = 0;

	for (int i = 0; i < 50; i++) {
		for (int j = 0; j < 50; j++)
			numbers[j] = j * 7919 % 101;
		try {
			counted here;

			qsort(numbers, 50, sizeof(numbers[0]), compare);
		} catch (int n) {
			sum += n;
		}
	}
	return sum;
}

static jmp_buf back;

static NOINLINE void leap(int n)
{
	if (!n)
		longjmp(back, 7);
	leap(n - 1);
	__asm__ volatile("");
}

static int leaps()
{
	static volatile int times;
	int got = setjmp(back);

	if (times < 100) {
		times = times + 1;
		leap(times % 30);
	}
	return got + times;
}

static NOINLINE void leave(int n)
{
	counted here;

	if (!n)
		pthread_exit(NULL);
	leave(n - 1);
	__asm__ volatile("");
}

static void *exits(void *)
{
	leave(5);
	return NULL;
}

static volatile int is_waiting;

static NOINLINE void wait_in(int n)
{
	counted here;

	while (!n) {
		is_waiting = 1;
		usleep(1000);
	}
	wait_in(n - 1);
	__asm__ volatile("");
}

static void *waits(void *)
{
	wait_in(5);
	return NULL;
}

static void *catches(void *)
{
	try {
		rethrower(9);
	} catch (...) {
	}
	return NULL;
}

static int threads()
{
	pthread_t thread;
	void *result = NULL;

	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, i % 2 ? exits : catches, NULL);
		pthread_join(thread, NULL);
	}
	pthread_create(&thread, NULL, waits, NULL);
	while (!is_waiting)
		usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED;
}

int main()
{
	printf("exceptions %d\n", exceptions());
	printf("qsort %d\n", through_qsort());
	printf("leaps %d\n", leaps());
	printf("threads %d\n", threads());
	printf("destroyed %d\n", destroyed);
	return 0;
}
