/*
 * Seizing, though a thread of the process may be executing something: PTRACE_SEIZE waits for that, and that for the end
 * of threads that are ours. Waiting for a stop that may not come.
 *
 * The signal of a timer breaks the wait off. It is let in, and the timer runs, between hub_seizing_begins() and
 * hub_seizing_ends() alone, or while a stop is waited for.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/breakable.h"
#include "hub/thread/seize.h"

#define PERIOD_NS 5000000
#define LATER_NS 20000000 /* long enough for a process that is traced itself to get any further */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int the_signal; /* 0: none was taken */

static void on_signal(int number, siginfo_t *info, void *context)
{
	kymo_break_call(context);
}

void kymo_take_seize_signal(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART }, before;

	for (int number = SIGRTMAX - 1; number >= SIGRTMIN && !the_signal; number--)
		if (!sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL &&
		    !sigaction(number, &action, NULL))
			the_signal = number;
}

/* ---- the timer ------------------------------------------------------------------------------- */

/* It counts as a signal that waits, of which the user, or the target for its user, may have as many as may be: then
 * with the limit of this process as high as may be, for that moment. */
static bool make_timer(struct sigevent *event, timer_t *ret)
{
	struct rlimit limit, most = { RLIM_INFINITY, RLIM_INFINITY };
	bool is_made = !timer_create(CLOCK_MONOTONIC, event, ret);

	if (is_made || errno != EAGAIN || getrlimit(RLIMIT_SIGPENDING, &limit))
		return is_made;
	if (setrlimit(RLIMIT_SIGPENDING, &most)) { /* it may not */
		most = (struct rlimit){ limit.rlim_max, limit.rlim_max };
		setrlimit(RLIMIT_SIGPENDING, &most);
	}
	is_made = !timer_create(CLOCK_MONOTONIC, event, ret);
	setrlimit(RLIMIT_SIGPENDING, &limit);
	return is_made;
}

static bool get_timer(struct hub_seizer *seizer)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = the_signal };

	event.sigev_notify_thread_id = gettid();
	if (!seizer->has_timer)
		seizer->has_timer = make_timer(&event, &seizer->timer);
	return seizer->has_timer;
}

/* `first_ns` from now, and then again and again: the first signal may come before the call that it is to break off. */
static void start_timer(struct hub_seizer *seizer, long first_ns, long period_ns)
{
	const struct itimerspec period = { { 0, period_ns }, { 0, first_ns } };
	sigset_t ours;

	if (!the_signal || seizer->depth++ || !get_timer(seizer))
		return;
	sigemptyset(&ours);
	sigaddset(&ours, the_signal);
	pthread_sigmask(SIG_UNBLOCK, &ours, &seizer->mask);
	timer_settime(seizer->timer, 0, &period, NULL);
}

void hub_seizing_begins(struct hub_seizer *seizer)
{
	start_timer(seizer, PERIOD_NS, PERIOD_NS);
}

void hub_seizing_ends(struct hub_seizer *seizer)
{
	const struct itimerspec never = { { 0, 0 }, { 0, 0 } };

	if (!seizer->depth || --seizer->depth || !seizer->has_timer)
		return;
	timer_settime(seizer->timer, 0, &never,
		      NULL); /* a signal that has come is delivered before the mask is as it was */
	pthread_sigmask(SIG_SETMASK, &seizer->mask, NULL);
}

void hub_seizer_deinit(struct hub_seizer *seizer)
{
	if (seizer->has_timer)
		timer_delete(seizer->timer);
	seizer->has_timer = false;
}

int hub_sleep_for_stop(struct hub_seizer *seizer, pid_t tid, long most_ns)
{
	siginfo_t info;
	int err = -ENOTSUP;

	start_timer(seizer, most_ns, LATER_NS);
	if (seizer->has_timer)
		err = (int)kymo_breakable_call(SYS_waitid, tid ? P_PID : P_ALL, tid, (long)(uintptr_t)&info,
					       WEXITED | WNOWAIT | __WALL | __WNOTHREAD, 0);
	hub_seizing_ends(seizer);
	return err;
}

int hub_seize_thread(pid_t tid, unsigned long options)
{
	return (int)kymo_breakable_call(SYS_ptrace, PTRACE_SEIZE, tid, 0, (long)options, 0);
}
