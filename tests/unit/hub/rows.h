/* What is traced by the rows of test_hub.c and test_hub_control.c. */
#ifndef KYMO_TESTS_UNIT_HUB_ROWS_H
#define KYMO_TESTS_UNIT_HUB_ROWS_H

#include "fixture.h"

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

/* Counts, and makes no call. */
static inline int spinning(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		shared->count++;
	return 0;
}

static inline int ending(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		nap();
	return 7;
}

#endif
