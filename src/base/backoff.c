#include "base/backoff.h"

#include <sched.h>
#include <time.h>

#define SPINS 30

/* A nap is at least as long as the timer slack, some 50 us. */
void kymo_back_off(unsigned int spins)
{
	unsigned int naps = spins < SPINS ? 0 : spins - SPINS;

	if (spins < SPINS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ 0, naps < 6 ? 20000l << naps : 1000000 }, NULL);
}
