/* Seizing, and waiting for stops, in bounded time. docs/internals/engines.md, "Seizing while a thread executes". */
#ifndef KYMO_HUB_THREAD_SEIZE_H
#define KYMO_HUB_THREAD_SEIZE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define HUB_OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEEXIT)

/* Options for threads that an owner seizes to freeze them. New threads are not attached: their maker may be killed
 * before it has told of them. */
#define HUB_TAKER_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)

/* A thread that seizes, and the timer that interrupts its waits. Zeroed, it has no timer. */
struct hub_seizer {
	unsigned int depth, batches;
	bool has_timer, is_armed;
	timer_t timer;
	bool was_blocked;  /* the signal, in the thread's own mask */
	bool is_sleeping;  /* since the first sleep; then the signal is blocked between sleeps */
	uint64_t fires_ns; /* when the timer does; 0: it was not set */
};

/* Between these two, which nest, hub_seize_thread() may return -EINTR if this process has taken the signal, and sleeps
 * may end early. On the thread that seizes, which is always the same. */
void hub_seizing_begins(struct hub_seizer *seizer);
void hub_seizing_ends(struct hub_seizer *seizer);

/* What is between these two may seize, or may not: the timer is set when it does first, and stays so until the end. */
void hub_seizing_may_begin(struct hub_seizer *seizer);
void hub_seizing_is_over(struct hub_seizer *seizer);
void hub_seizer_deinit(struct hub_seizer *seizer);

/*
 * Sleep until thread `tid` (0: any that this thread traces) has a status, which is left for a wait. It may have had one
 * from the start. -EINTR: `most_ns` are over, or half of them; -ENOTSUP: this process has not taken the signal, or
 * there is no timer; -ECHILD.
 *
 * The kernel moves a thread that sleeps in a wait to the processor of the thread that stops. A thread that sleeps for a
 * signal is woken where it was, which takes several times as long if that processor is idle.
 */
int hub_sleep_for_stop(struct hub_seizer *seizer, pid_t tid, long most_ns);

/* No sleep follows for a while: disarm the timer, and let the thread's mask be as it was before the first sleep. For
 * the thread that sleeps. */
void hub_sleeps_end(struct hub_seizer *seizer);

/* PTRACE_SEIZE. 0 or a negative errno. */
int hub_seize_thread(pid_t tid, unsigned long options);

/*
 * Reserve a signal of this process, which must be kymo's own. It ends waits of its hubs that would never end while they
 * seize threads (docs/internals/engines.md, hazard 17). The signal has a handler from then on, also in forked children
 * until they execute a program. Once, before there is a hub or another thread.
 */
void kymo_take_seize_signal(void);

#endif
