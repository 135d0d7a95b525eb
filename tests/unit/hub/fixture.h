/* A hub, a child that counts what it does, and which engine is told of it: what tests of hazards begin with. */
#ifndef KYMO_TESTS_UNIT_PROC_FIXTURE_H
#define KYMO_TESTS_UNIT_PROC_FIXTURE_H

#include "engines.h"

#define WITH_BREAKPOINTS (KYMO_ATTACH_CREATE | KYMO_ATTACH_BREAKPOINTS)

static inline uint64_t at(const void *function)
{
	return (uint64_t)(uintptr_t)function;
}

struct fixture {
	struct kymo_hub *hub;
	struct shared *shared;
	struct book book, other;
	pid_t pid;
};

static inline void begin(struct fixture *f, int (*run)(struct shared *shared))
{
	memset(f, 0, sizeof(*f));
	f->shared = share();
	f->book.more = f->other.more = f;
	f->pid = child_of(run, f->shared);
	eventually(f->shared->ready);
	f->hub = new_hub();
}

static inline void end(struct fixture *f)
{
	kymo_hub_destroy(f->hub);
	end_with_kill(f->pid);
	munmap(f->shared, sizeof(*f->shared));
}

static inline void runs(const struct fixture *f)
{
	int before = f->shared->count;

	eventually(f->shared->count > before + 1);
}

static inline void stands(const struct fixture *f)
{
	int before;

	nap();
	before = f->shared->count;
	for (int i = 0; i < 20; i++)
		nap();
	assert_int_equal(f->shared->count, before);
}

static inline int sleeping(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		pause();
	return 0;
}

static inline int counting(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over) {
		shared->count++;
		syscall(SYS_getppid);
	}
	return 0;
}

static inline void *count_on(void *data)
{
	struct shared *shared = data;

	while (!shared->is_over) {
		shared->count++;
		syscall(SYS_getppid);
	}
	_exit(0); /* no looking for leaks: that takes a place for a tracer */
}

static inline int counting_by_threads(struct shared *shared)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, count_on, shared);
	return counting(shared);
}

#endif
