/*
 * Signals that interrupt a thread again and again, by a timer of its own. Include after cmocka.h.
 */
#ifndef KYMO_TESTS_ARCH_TICKS_H
#define KYMO_TESTS_ARCH_TICKS_H

#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* The handler of the whole process; ticks_release() puts back what was `before`. */
static inline void ticks_catch(void (*handler)(int signal), struct sigaction *before)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

	assert_int_equal(sigaction(SIGUSR1, &action, before), 0);
}

static inline void ticks_release(const struct sigaction *before)
{
	sigaction(SIGUSR1, before, NULL);
}

/* Interrupt this thread every `ns`. Not an assertion, for threads can't fail by those: whether it is so. */
static inline bool ticks_start(long ns, timer_t *ret)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec every = { { 0, ns }, { 0, ns } };

	event._sigev_un._tid = gettid();
	return !timer_create(CLOCK_MONOTONIC, &event, ret) && !timer_settime(*ret, 0, &every, NULL);
}

static inline void ticks_stop(timer_t timer)
{
	struct itimerspec never = { 0 };

	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
}

#endif
