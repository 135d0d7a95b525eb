/*
 * Seizing, though a thread of the process may be executing something: PTRACE_SEIZE waits for that, and that for the end
 * of threads that are ours. Waiting for a stop that may not come.
 *
 * The signal of a timer breaks the wait off. It is let in between hub_seizing_begins() and hub_seizing_ends() alone, up
 * to hub_seizing_is_over() in a batch, or while a stop is waited for.
 *
 * Sleeps for stops come by the dozen, and to arm a timer and disarm it costs more than the rest of a short sleep. So
 * the timer stays armed from the first of them to hub_sleeps_end(). It is set again where it would not fire in time for
 * the sleep that begins. Between sleeps its signal is blocked: it stays pending, and breaks off no other call of this
 * thread. The kernel does not start the period of a timer whose signal is pending, so that wakes no thread.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/breakable.h"
#include "base/io.h"
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

	if (seizer->has_timer)
		return true;
	event.sigev_notify_thread_id = gettid();
	seizer->has_timer = make_timer(&event, &seizer->timer);
	return seizer->has_timer;
}

/* `first_ns` from now, and then again and again: the first signal may come before the call that it is to break off. */
static void set_timer(struct hub_seizer *seizer, long first_ns, long period_ns)
{
	const struct itimerspec period = { { 0, period_ns }, { 0, first_ns } };

	timer_settime(seizer->timer, 0, &period, NULL);
}

/* Block the signal, or unblock it. Whether it was blocked. */
static bool set_blocked(int how)
{
	sigset_t ours, before;

	sigemptyset(&ours);
	sigaddset(&ours, the_signal);
	pthread_sigmask(how, &ours, &before);
	return sigismember(&before, the_signal);
}

static void stop_timer(struct hub_seizer *seizer)
{
	seizer->is_armed = false;
	set_timer(seizer, 0, 0);
	set_blocked(SIG_UNBLOCK); /* a signal that is pending is delivered now */
	if (seizer->was_blocked)
		set_blocked(SIG_BLOCK);
}

void hub_seizing_begins(struct hub_seizer *seizer)
{
	if (!the_signal || seizer->depth++ || seizer->is_armed || !get_timer(seizer))
		return;
	hub_sleeps_end(seizer);
	seizer->was_blocked = set_blocked(SIG_UNBLOCK);
	seizer->is_armed = true;
	set_timer(seizer, PERIOD_NS, PERIOD_NS);
}

void hub_seizing_ends(struct hub_seizer *seizer)
{
	if (seizer->depth && !--seizer->depth && !seizer->batches && seizer->is_armed)
		stop_timer(seizer);
}

void hub_seizing_may_begin(struct hub_seizer *seizer)
{
	seizer->batches++;
}

void hub_seizing_is_over(struct hub_seizer *seizer)
{
	if (!--seizer->batches && !seizer->depth && seizer->is_armed)
		stop_timer(seizer);
}

void hub_seizer_deinit(struct hub_seizer *seizer)
{
	hub_sleeps_end(seizer);
	if (seizer->has_timer)
		timer_delete(seizer->timer);
	seizer->has_timer = false;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static void begin_sleeps(struct hub_seizer *seizer)
{
	if (seizer->is_sleeping)
		return;
	seizer->is_sleeping = true;
	seizer->fires_ns = 0;
	seizer->was_blocked = set_blocked(SIG_BLOCK);
}

void hub_sleeps_end(struct hub_seizer *seizer)
{
	if (!seizer->is_sleeping)
		return;
	seizer->is_sleeping = false;
	stop_timer(seizer);
}

/* At half of that time or later, and never later than that. */
static void get_to_fire(struct hub_seizer *seizer, uint64_t within_ns)
{
	uint64_t now = kymo_now_ns();

	if (seizer->fires_ns >= now + within_ns / 2 && seizer->fires_ns <= now + within_ns)
		return;
	set_timer(seizer, (long)within_ns, LATER_NS);
	seizer->fires_ns = now + within_ns;
}

static int sleep_for_stop(pid_t tid)
{
	siginfo_t info;

	return (int)kymo_breakable_call(SYS_waitid, tid ? P_PID : P_ALL, tid, (long)(uintptr_t)&info,
					WEXITED | WNOWAIT | __WALL | __WNOTHREAD, 0);
}

int hub_sleep_for_stop(struct hub_seizer *seizer, pid_t tid, long most_ns)
{
	int err;

	if (!the_signal || (seizer->depth ? !seizer->has_timer : !get_timer(seizer)))
		return -ENOTSUP;
	if (seizer->is_armed) /* the timer runs, and its signal is let in */
		return sleep_for_stop(tid);
	begin_sleeps(seizer);
	get_to_fire(seizer, (uint64_t)most_ns);
	set_blocked(SIG_UNBLOCK);
	err = sleep_for_stop(tid);
	set_blocked(SIG_BLOCK);
	return err;
}

int hub_seize_thread(pid_t tid, unsigned long options)
{
	return (int)kymo_breakable_call(SYS_ptrace, PTRACE_SEIZE, tid, 0, (long)options, 0);
}
