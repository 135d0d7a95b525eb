/* What is traced by the rows of test_hub.c and test_hub_control.c. */
#ifndef KYMO_TESTS_UNIT_HUB_ROWS_H
#define KYMO_TESTS_UNIT_HUB_ROWS_H

#include "engines.h"

/* Makes a system call whenever it is told to go. */
static inline int obedient(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over) {
		while (!shared->go)
			nap();
		shared->go = 0;
		shared->seen = (int)syscall(SYS_getppid);
		shared->count++;
	}
	return 0;
}

static inline int counting(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		shared->count++;
	return 0;
}

static inline int sleeping(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		pause();
	return 0;
}

static inline int ending(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		nap();
	return 7;
}

struct fixture {
	struct kymo_hub *hub;
	struct shared *shared;
	struct book book, other;
	pid_t pid;
};

static inline void begin(struct fixture *fixture, int (*run)(struct shared *shared))
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->shared = share();
	fixture->pid = child_of(run, fixture->shared);
	eventually(fixture->shared->ready);
	fixture->hub = new_hub();
}

static inline void end(struct fixture *fixture)
{
	kymo_hub_destroy(fixture->hub);
	end_with_kill(fixture->pid);
	munmap(fixture->shared, sizeof(*fixture->shared));
}

static inline void runs(const struct fixture *fixture)
{
	int before = fixture->shared->count;

	eventually(fixture->shared->count > before + 1);
}

/* Counting has stopped: it can't be seen to count for a while. */
static inline void stands(const struct fixture *fixture)
{
	int before = fixture->shared->count;

	for (int i = 0; i < 20; i++)
		nap();
	assert_int_equal(fixture->shared->count, before);
}

#endif
