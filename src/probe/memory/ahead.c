#include "probe/memory/ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* With all signals blocked. 0 or an errno value. */
static int start(void *(*run)(void *data), void *data, pthread_t *ret)
{
	pthread_attr_t attributes;
	sigset_t all, mask;
	int err = pthread_attr_init(&attributes);

	if (err)
		return err;
	pthread_attr_setstacksize(&attributes, STACK_SIZE); /* else it is the usual one */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(ret, &attributes, run, data);
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
	if (!start(allocate_all, ahead, &ahead->thread))
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

/* ---- freeing --------------------------------------------------------------------------------- */

struct spent {
	void *view;
	uint64_t size;
	int fd;
};

/* What the thread releases: there is one such thread at most. */
static struct spent spent_aside;
static atomic_bool is_under_way;

static void release(const struct spent *spent)
{
	if (spent->view)
		munmap(spent->view, spent->size);
	close(spent->fd);
}

static void *release_aside(void *data)
{
	release(&spent_aside);
	atomic_store(&is_under_way, false);
	return NULL;
}

void kymo_free_aside(void *view, uint64_t size, int fd)
{
	const struct spent spent = { view, size, fd };
	pthread_t thread;

	if (!atomic_exchange(&is_under_way, true)) {
		spent_aside = spent;
		if (!start(release_aside, NULL, &thread)) {
			pthread_detach(thread);
			return;
		}
		atomic_store(&is_under_way, false);
	}
	release(&spent);
}
