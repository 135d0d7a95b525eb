/*
 * app SEED
 *
 * What bpftrace and kymo are asked about. Each function NAME calls its_NAME with the same arguments, and returns what
 * that returns: so two tools see the same hits in one run, each with a place of its own. Works between two lines on
 * stdin, in three threads, one after the other, each on one CPU. They have their names before the first line, and
 * stay until the second one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN __attribute__((noipa))
#define KEEP(value) __asm__ volatile("" : "+r"(value)::"memory")

/* `name` returns what `its_name` does, and jumps nowhere. */
#define PAIR(type, name, parameters, arguments) \
	OWN type name parameters \
	{ \
		type value = its_##name arguments; \
\
		KEEP(value); \
		return value; \
	}

struct conn {
	int fd;
	int state;
	const char *peer;
};

static long seed;

OWN long its_take(long size, long flags)
{
	return size + flags;
}
PAIR(long, take, (long size, long flags), (size, flags))

OWN const char *its_line(long number)
{
	static const char *const lines[] = { "ls -l", "echo one two", "", "exit" };

	return lines[number & 3];
}
PAIR(const char *, line, (long number), (number))

OWN long its_fetch(const char *host, long port)
{
	usleep((useconds_t)(port % 7 * 40));
	return strlen(host) % 2 ? -1 : port;
}
PAIR(long, fetch, (const char *host, long port), (host, port))

OWN int its_ssl_read(void *data, int size)
{
	return data ? size : -1;
}
PAIR(int, ssl_read, (void *data, int size), (data, size))

OWN int its_ssl_write(void *data, int size)
{
	return data ? size / 2 : 0;
}
PAIR(int, ssl_write, (void *data, int size), (data, size))

OWN int its_ssl_shake(void *data, int size)
{
	return data ? 1 : -size;
}
PAIR(int, ssl_shake, (void *data, int size), (data, size))

OWN long its_serve(struct conn *c, long a, long b, long d, long e, long f, long seventh, long eighth)
{
	return c->fd + a + b + d + e + f + seventh + eighth;
}
PAIR(long, serve, (struct conn * c, long a, long b, long d, long e, long f, long seventh, long eighth),
     (c, a, b, d, e, f, seventh, eighth))

OWN long straight(long n)
{
	long value = take(n * 37 + seed, n & 3);

	KEEP(value);
	return value;
}

OWN long round_about(long n)
{
	long value = n % 3 ? straight(n * n) : take(n, 3);

	KEEP(value);
	return value;
}

OWN long work(long thread)
{
	static const char *const hosts[] = { "web", "host-1", "host-22", "db" };
	long sum = 0;

	for (long i = 0; i < 60; i++) {
		struct conn conn = { (int)(i % 5 + 3), (int)(i & 1), hosts[i % 3] };

		sum += straight(i) + round_about(i + thread) +
		       serve(&conn, i, -i, thread, seed, 1, i * 5 - 20, -thread);
		sum += ssl_read(i % 4 ? &conn : NULL, (int)i) + ssl_write(i % 6 ? &conn : NULL, 2 * (int)i) +
		       ssl_shake(i % 9 ? &conn : NULL, 3);
		if (i % 3 == 0)
			sum += fetch(hosts[(i + thread) & 3], i) + !!line(i);
	}
	KEEP(sum);
	return sum;
}

#define N_THREADS 3
static sem_t turns[N_THREADS + 1], is_ready, is_done;

static void *run(void *number)
{
	const long thread = (long)number, n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char name[16];
	cpu_set_t cpus;

	snprintf(name, sizeof(name), "worker-%ld", thread);
	pthread_setname_np(pthread_self(), name);
	CPU_ZERO(&cpus);
	CPU_SET((size_t)(thread % n_cpus), &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	sem_post(&is_ready);
	sem_wait(&turns[thread]);
	work(thread);
	sem_post(&is_done);
	pause();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	seed = argc > 1 ? atol(argv[1]) : 0;
	for (long i = 1; i <= N_THREADS; i++) {
		pthread_create(&thread, NULL, run, (void *)i);
		sem_wait(&is_ready);
	}
	puts("ready");
	fflush(stdout);
	getchar();
	for (long i = 1; i <= N_THREADS; i++) {
		sem_post(&turns[i]);
		sem_wait(&is_done);
	}
	puts("done");
	fflush(stdout);
	getchar();
	return 0;
}
