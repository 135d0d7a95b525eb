/*
 * Seizing, though a thread of the process may be executing something: PTRACE_SEIZE waits for that, and that for the end of threads that are ours.
 *
 * The signal of a timer breaks the wait off. It is let in, and the timer runs, between hub_seizing_begins() and hub_seizing_ends() alone.
 */
#include "proc/hub_seize.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/breakable.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/hub.h"

#define PERIOD_NS 5000000
#define RENAMED_NS 100000000ull

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int the_signal;	/* 0: none was taken */

static void on_signal(int number, siginfo_t *info, void *context)
{
	kymo_break_call(context);
}

void kymo_take_seize_signal(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART }, before;

	for (int number = SIGRTMAX - 1; number >= SIGRTMIN && !the_signal; number--)
		if (!sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL && !sigaction(number, &action, NULL))
			the_signal = number;
}

/* ---- the timer ------------------------------------------------------------------------------------------------------------- */

/* It counts as a signal that waits, of which the user, or the target for its user, may have as many as may be: then with the limit of this process as high as may be, for that moment. */
static bool make_timer(struct sigevent *event, timer_t *ret)
{
	struct rlimit limit, most = { RLIM_INFINITY, RLIM_INFINITY };
	bool is_made = !timer_create(CLOCK_MONOTONIC, event, ret);

	if (is_made || errno != EAGAIN || getrlimit(RLIMIT_SIGPENDING, &limit))
		return is_made;
	if (setrlimit(RLIMIT_SIGPENDING, &most)) {	/* it may not */
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

void hub_seizing_begins(struct hub_seizer *seizer)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	sigset_t ours;

	if (!the_signal || seizer->depth++ || !get_timer(seizer))
		return;
	sigemptyset(&ours);
	sigaddset(&ours, the_signal);
	pthread_sigmask(SIG_UNBLOCK, &ours, &seizer->mask);
	timer_settime(seizer->timer, 0, &period, NULL);
}

void hub_seizing_ends(struct hub_seizer *seizer)
{
	const struct itimerspec never = { { 0, 0 }, { 0, 0 } };

	if (!seizer->depth || --seizer->depth || !seizer->has_timer)
		return;
	timer_settime(seizer->timer, 0, &never, NULL);	/* a signal that has come is delivered before the mask is as it was */
	pthread_sigmask(SIG_SETMASK, &seizer->mask, NULL);
}

void hub_seizer_deinit(struct hub_seizer *seizer)
{
	if (seizer->has_timer)
		timer_delete(seizer->timer);
	seizer->has_timer = false;
}

int hub_seize_thread(pid_t tid, unsigned long options)
{
	return (int)kymo_breakable_call(SYS_ptrace, PTRACE_SEIZE, tid, 0, (long)options);
}

/* ---- who is to end ----------------------------------------------------------------------------------------------------------- */

/* Instead of that of a stop in which it was killed. */
static void keep_status(struct kymo_hub *hub, struct task *task, pid_t tid, int status)
{
	if (task && task->is_fetched)
		hub_forget_status(hub, task);
	hub_keep_status(hub, tid, status);
}

/* The stop is kept, as it is all that a first thread tells. */
static void let_go_on(struct kymo_hub *hub, struct task *task, const siginfo_t *info)
{
	unsigned long status;

	if (info->si_status >> 8 != PTRACE_EVENT_EXIT || (task && task->state == TASK_STOPPED && task->stop == STOP_ENDING))
		return;
	if (task && !ptrace(PTRACE_GETEVENTMSG, info->si_pid, 0, &status))
		task->end_status = (int)status;
	ptrace(PTRACE_CONT, info->si_pid, 0, 0);
	if (task)
		keep_status(hub, task, info->si_pid, info->si_status << 8 | 0x7f);
}

static void let_end(struct kymo_hub *hub, pid_t tid)
{
	struct task *task = hub_find(hub, tid);
	siginfo_t info = { .si_pid = 0 };
	int status;

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) || !info.si_pid)
		return;		/* not ours, or it has nothing to tell */
	if (info.si_code == CLD_TRAPPED)
		let_go_on(hub, task, &info);
	else if (waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid)
		keep_status(hub, task, tid, status);
}

void hub_let_end(struct kymo_hub *hub, pid_t pid)
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	const struct dirent *entry;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			let_end(hub, (pid_t)strtol(entry->d_name, NULL, 10));
}

void hub_let_go_of_renamed(struct kymo_hub *hub, pid_t pid)
{
	uint64_t deadline = kymo_now_ns() + RENAMED_NS;
	pid_t got = 0;
	int status;

	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	for (unsigned int spins = 0; !got && kymo_now_ns() < deadline; spins++) {
		kymo_wait_a_little(spins);
		got = waitpid(pid, &status, __WALL | __WNOTHREAD | WNOHANG);
	}
	if (got == pid && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	else if (got == pid)
		hub_keep_status(hub, pid, status);
}

bool hub_has_end(const struct kymo_hub *hub, const struct task *task)
{
	for (size_t i = 0; task->is_fetched && i < hub->early.n; i++)
		if (hub->early.items[i].tid == task->tid && !WIFSTOPPED(hub->early.items[i].status))
			return true;
	return false;
}

bool hub_was_replaced(struct kymo_hub *hub, pid_t pid)
{
	struct task *first = hub_find(hub, pid);
	struct kymo_process_info info;

	if (!first || first->process->is_launched || hub_has_end(hub, first))
		return first && !first->process->is_launched;
	if (!kymo_process_peek(pid, &info) || info.tracer == gettid())
		return false;
	keep_status(hub, first, pid, SIGKILL);
	return true;
}
