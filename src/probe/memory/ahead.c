#include "probe/memory/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "probe/memory/remote_memory.h"

#define STACK_SIZE (64u << 10)

struct kymo_ahead {
	pthread_t thread;
	int fd, err;
	size_t n;
	struct kymo_range ranges[];
};

static void *allocate_all(void *data)
{
	struct kymo_ahead *ahead = data;

	for (size_t i = 0; i < ahead->n && !ahead->err; i++)
		ahead->err = kymo_allocate(ahead->fd, ahead->ranges[i].offset, ahead->ranges[i].size);
	return NULL;
}

/* 0 or an errno value. */
static int start(struct kymo_ahead *ahead)
{
	pthread_attr_t attributes;
	sigset_t all, mask;
	int err = pthread_attr_init(&attributes);

	if (err)
		return err;
	pthread_attr_setstacksize(&attributes, STACK_SIZE); /* else it is the usual one */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(&ahead->thread, &attributes, allocate_all, ahead);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_attr_destroy(&attributes);
	return err;
}

struct kymo_ahead *kymo_ahead_begin(int fd, const struct kymo_range *ranges, size_t n)
{
	struct kymo_ahead *ahead = malloc(sizeof(*ahead) + n * sizeof(*ranges));

	if (!ahead)
		return NULL;
	*ahead = (struct kymo_ahead){ .fd = fd, .n = n };
	memcpy(ahead->ranges, ranges, n * sizeof(*ranges));
	if (!start(ahead))
		return ahead;
	free(ahead);
	return NULL;
}

int kymo_ahead_end(struct kymo_ahead *ahead)
{
	int err;

	pthread_join(ahead->thread, NULL);
	err = ahead->err;
	free(ahead);
	return err;
}
