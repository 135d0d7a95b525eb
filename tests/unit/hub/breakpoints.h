/* What tests of breakpoints begin with: functions to put them on, and engines that may. */
#ifndef KYMO_TESTS_UNIT_PROC_BREAKPOINTS_H
#define KYMO_TESTS_UNIT_PROC_BREAKPOINTS_H

#include "fixture.h"

#define TRAP 0xcc

/* What breakpoints are put on. The caller counts. */
__attribute__((noinline, unused)) static void tick(struct shared *shared)
{
	__asm__ volatile("" ::: "memory");
	atomic_fetch_add(&shared->count, 1);
}

__attribute__((noinline, unused)) static void cold(struct shared *shared)
{
	__asm__ volatile("" ::: "memory");
	shared->seen++;
}

static inline struct kymo_engine *breaker(struct kymo_hub *hub, pid_t tid, struct book *book)
{
	struct kymo_engine *engine = NULL;

	assert_int_equal(kymo_engine_attach(hub, tid, WITH_BREAKPOINTS, &ops, book, &engine), 0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_SIGNAL | KYMO_EVENT_QUIESCE), 0);
	return engine;
}

#endif
