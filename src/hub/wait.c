/*
 * Waiting for traced threads.
 *
 * In a wait for any thread the kernel looks at each traced thread; in a wait for one thread, at that one. So if there
 * are many threads, two kinds are waited for by their ids first. The first kind has a stop on its way: the thread was
 * interrupted, or goes on to restart a call that an interrupt came into. The second kind has had a status lately. This
 * takes no longer than one look at all threads would. All threads are looked at now and then, so that the others get
 * their turn.
 *
 * The kernel looks first at the threads that were seized last. So that all threads get their turn, all that stand at
 * system calls are fetched before the first of them goes on: by waits for any thread, and by their ids where such waits
 * have found some. A thread whose stop is expected goes before these, once for each interrupt.
 *
 * After a wait has told a stop, the kernel forgets it: if the tracer is killed then, the thread goes on without the
 * signal that it stood before. So a stop before a signal is told, and the thread goes on, without a wait. If the thread
 * stays in the stop, the wait is made after its event, as the stop would hide other threads'. SIGTRAP is not spared so:
 * the signals of steps and breakpoints would end the program.
 */
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/keeper.h"
#include "hub/wait.h"
#include "procfs/info.h"

#define CLOCK_NS 2000000
#define MOST_TURNS_FREE 15
#define WAITS_A_SCAN 64
#define SCAN_NS 50 /* of a thread, in a wait for any */
#define NEXT_EXPECTED 2
#define MORE_EXPECTED 32
#define REST_TASKS 64    /* more of them take longer to look at than a rest saves */
#define REST_NS 2000000  /* for so long the end of a thread that stands is not seen */
#define FOUND_BY_SCANS 8 /* then it is cheaper to ask for each by its id */
#define CALL_STOP (SIGTRAP | 0x80)

/* ---- one look -------------------------------------------------------------------------------- */

/* Before a signal; or at a system call, which saves a wait. */
static bool is_spared(const struct kymo_hub *hub, const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED && !(info->si_status >> 8) && info->si_status != SIGTRAP &&
	       info->si_pid != hub->sleep.waker;
}

/* The name of a thread that has ended can be read until it is waited for. */
static void note_end(struct kymo_hub *hub, const siginfo_t *info)
{
	if (!hub->is_here ||
	    (info->si_code != CLD_EXITED && info->si_code != CLD_KILLED && info->si_code != CLD_DUMPED))
		return;
	hub->ended.tid = info->si_pid;
	kymo_read_comm(info->si_pid, hub->ended.comm);
}

/* Whether thread `tid` (0: any) has a status: its id, or 0. */
static pid_t look_for_status(struct kymo_hub *hub, pid_t tid, int options, int *status_ret)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t got;

	/* Without WSTOPPED, which is for untraced children: such stops could not be taken below, and would hide all
	 * others. */
	if (waitid(tid ? P_PID : P_ALL, (id_t)tid, &info, WEXITED | WNOWAIT | __WALL | __WNOTHREAD | options) ||
	    !info.si_pid)
		return 0;
	/* A thread whose id an exec has changed gets no request before that stop was waited for. */
	if (info.si_code == CLD_TRAPPED && hub_looks_by_id(hub) && info.si_status >> 8 != PTRACE_EVENT_EXEC) {
		*status_ret = info.si_status << 8 | 0x7f;
		return info.si_pid;
	}
	if (is_spared(hub, &info)) {
		*status_ret = info.si_status << 8 | 0x7f;
		hub->statuses.spared = (struct hub_status){ .tid = info.si_pid, .status = *status_ret };
		return info.si_pid;
	}
	note_end(hub, &info);
	got = waitpid(info.si_pid, status_ret, __WALL | __WNOTHREAD | WNOHANG);
	return got > 0 ? got : 0;
}

bool hub_look(struct kymo_hub *hub, pid_t tid, int *status_ret)
{
	return look_for_status(hub, tid, WNOHANG, status_ret) == tid;
}

/* ---- threads that are likely to have news ---------------------------------------------------- */

/* The lock is not held; what is looked at, the hub's thread alone changes. */

static void note_recent(struct kymo_hub *hub, pid_t tid)
{
	size_t i = 0;

	while (i < HUB_RECENT - 1 && hub->search.recent[i] != tid)
		i++;
	for (; i > 0; i--)
		hub->search.recent[i] = hub->search.recent[i - 1];
	hub->search.recent[0] = tid;
}

/* Whether `tid`, which has just been found, stands at a system call, and waits for its turn now: others are to be found
 * before its next call. */
static bool takes_turn(struct kymo_hub *hub, pid_t tid, int *status_ret)
{
	if (hub->statuses.spared.tid != tid || WSTOPSIG(*status_ret) != CALL_STOP || !hub->search.recent[1] ||
	    !hub_find(hub, tid))
		return false;
	hub->statuses.spared.tid = 0;
	if (waitpid(tid, status_ret, __WALL | __WNOTHREAD | WNOHANG) == tid)
		hub_keep_status(hub, tid, *status_ret);
	return true;
}

static pid_t look_at_recent(struct kymo_hub *hub, int *status_ret)
{
	for (size_t i = 0; i < HUB_RECENT && hub->search.recent[i]; i++)
		if (look_for_status(hub, hub->search.recent[i], WNOHANG, status_ret) &&
		    !takes_turn(hub, hub->search.recent[i], status_ret))
			return hub->search.recent[i];
	return hub_take_early(hub, status_ret);
}

/* All of them by their ids; one that does not wait for its turn, or 0. */
static pid_t look_at_each(struct kymo_hub *hub, int *status_ret)
{
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (const struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket) {
			pid_t tid = task->tid;

			if (task->state == TASK_RUNNING && !task->resumed.is_fetched &&
			    look_for_status(hub, tid, WNOHANG, status_ret) && !takes_turn(hub, tid, status_ret))
				return tid;
		}
	return 0;
}

/* To look whether others stand at calls costs as much as the stop itself. If none did, the next ones are handled at
 * once, twice as many each time: others wait for so many stops at most. */
static void note_turn(struct kymo_hub *hub, bool has_others)
{
	hub->search.n_turns_free = has_others                                   ? 0
				   : hub->search.n_turns_free < MOST_TURNS_FREE ? 2 * hub->search.n_turns_free + 1
										: MOST_TURNS_FREE;
	hub->search.n_turns_left = hub->search.n_turns_free;
}

static pid_t poll_tasks(struct kymo_hub *hub, int options, int *status_ret)
{
	pid_t got = look_for_status(hub, 0, options, status_ret);
	unsigned int n = 1;

	if (got && hub->search.n_turns_left) {
		hub->search.n_turns_left--;
		return got;
	}
	for (; got && takes_turn(hub, got, status_ret); n++)
		got = n < FOUND_BY_SCANS ? look_for_status(hub, 0, WNOHANG, status_ret) : look_at_each(hub, status_ret);
	if (n > 1)
		note_turn(hub, got || n > 2);
	return got ? got : hub_take_early(hub, status_ret);
}

static void forget_expected(struct kymo_hub *hub, size_t i)
{
	struct task *task = hub_find(hub, hub->statuses.expected.items[i]);

	if (task)
		task->resumed.is_expected = false;
	hub->statuses.expected.items[i] = hub->statuses.expected.items[--hub->statuses.expected.n];
}

static bool is_to_come(const struct task *task)
{
	return task && !task->resumed.is_fetched &&
	       (task->resumed.was_interrupted || (task->resumed.makes_call_again && task->state == TASK_RUNNING));
}

/* At most `most` of them, from where the last look has ended: those that were made to stop first have stopped first. */
static pid_t look_at_expected(struct kymo_hub *hub, size_t most, int *status_ret)
{
	for (size_t left = hub->statuses.expected.n < most ? hub->statuses.expected.n : most;
	     left && !hub->sleep.is_woken; left--) {
		size_t i = hub->statuses.next_expected < hub->statuses.expected.n ? hub->statuses.next_expected : 0;
		pid_t tid = hub->statuses.expected.items[i], got = 0;
		bool is_one = is_to_come(hub_find(hub, tid));

		if (is_one)
			got = look_for_status(hub, tid, WNOHANG, status_ret);
		hub->statuses.next_expected = i;
		if (is_one && !got)
			hub->statuses.next_expected++;
		else
			forget_expected(hub, i);
		if (got == tid)
			return tid;
	}
	return 0;
}

/* The next of the expected ones comes before the recent ones, which may keep the hub busy; but no more, as some don't
 * come for long.
 */
static pid_t look_at_likely(struct kymo_hub *hub, int *status_ret)
{
	pid_t got = look_at_expected(hub, NEXT_EXPECTED, status_ret);

	if (!got)
		got = look_at_recent(hub, status_ret);
	return got ? got : look_at_expected(hub, MORE_EXPECTED, status_ret);
}

static pid_t wait_for_likely(struct kymo_hub *hub, bool sleeps, unsigned int n_tasks, int *status_ret)
{
	uint64_t now = kymo_now_ns(), deadline = now + n_tasks * SCAN_NS;

	for (;;) {
		pid_t got = look_at_likely(hub, status_ret);

		if (got || !sleeps || hub->sleep.is_woken || now >= deadline)
			return got;
		sched_yield(); /* there is a look after it, however long it takes */
		now = kymo_now_ns();
	}
}

/* A stop that was dealt with was not waited for, so it is told again. But a stopped thread may be killed, as by the
 * exec of another thread, which waits for its end. */
static bool is_news(const struct task *task, int status)
{
	int event = status >> 16;

	if (!WIFSTOPPED(status) || event == PTRACE_EVENT_EXEC)
		return true;
	if (task->state == TASK_STOPPED)
		return event == PTRACE_EVENT_EXIT && task->stop != STOP_ENDING;
	/* Else its first stop is kept for its maker, which has gone if a thread was killed. */
	return !task->birth.has_maker || task->birth.is_newborn ||
	       (event == PTRACE_EVENT_EXIT && task->tid != task->process->pid);
}

static pid_t look_at_each_own(struct kymo_hub *hub, bool stopped, int *status_ret)
{
	for (size_t i = 0; i < TASK_BUCKETS && hub->tasks.n; i++)
		for (const struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket)
			if ((task->state == TASK_STOPPED) == stopped &&
			    look_for_status(hub, task->tid, WNOHANG, status_ret) == task->tid &&
			    is_news(task, *status_ret))
				return task->tid;
	return 0;
}

/* A thread that executes a program gets the id of its process, which may have no thread of that id any more. */
static pid_t look_at_firsts(struct kymo_hub *hub, int *status_ret)
{
	for (const struct hub_process *process = hub->processes; process; process = process->next)
		if (process->tasks && !hub_find(hub, process->pid) &&
		    look_for_status(hub, process->pid, WNOHANG, status_ret) == process->pid &&
		    (!WIFSTOPPED(*status_ret) || *status_ret >> 16 == PTRACE_EVENT_EXEC))
			return process->pid;
	return 0;
}

/* Each by its id: threads that will report something, and then all others. */
static pid_t look_at_own(struct kymo_hub *hub, int *status_ret)
{
	pid_t got = look_at_each_own(hub, false, status_ret);

	if (!got)
		got = look_at_firsts(hub, status_ret);
	return got ? got : look_at_each_own(hub, true, status_ret);
}

/* ---- any ------------------------------------------------------------------------------------- */

static pid_t wait_for_any(struct kymo_hub *hub, bool sleeps, int *status_ret)
{
	bool has_clock = hub_needs_clock(hub) || !hub->sleep.waker;
	bool asks_likely = hub->tasks.n >= HUB_MANY_TASKS && ++hub->search.n_unscanned % WAITS_A_SCAN;
	unsigned int n_tasks = hub->tasks.n;
	pid_t got;

	hub->sleep.is_asleep = true;
	pthread_mutex_unlock(&hub->lock);
	got = asks_likely ? wait_for_likely(hub, sleeps, n_tasks, status_ret) : 0;
	if (!got)
		got = poll_tasks(hub, sleeps && !has_clock ? 0 : WNOHANG, status_ret);
	if (sleeps && has_clock && !got)
		nanosleep(&(struct timespec){ 0, CLOCK_NS }, NULL);
	pthread_mutex_lock(&hub->lock);
	hub->sleep.is_asleep = false;
	return got;
}

static bool do_all_stand(const struct kymo_hub *hub)
{
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (const struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket)
			if (task->state != TASK_STOPPED || task->remote_call)
				return false;
	return true;
}

bool hub_rest(struct kymo_hub *hub)
{
	struct timespec until;

	if (!hub->sleep.was_asked || hub->is_ending || !hub->tasks.n || hub->tasks.n > REST_TASKS ||
	    hub_needs_clock(hub) || !do_all_stand(hub))
		return false;
	hub->sleep.was_asked = false;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += REST_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	hub->sleep.is_resting = true;
	pthread_cond_timedwait(&hub->sleep.asked, &hub->lock, &until);
	hub->sleep.is_resting = false;
	return true;
}

pid_t hub_wait(struct kymo_hub *hub, bool sleeps, int *status_ret)
{
	pid_t got;

	hub_wait_for_spared(
		hub); /* in the middle of an event the hub must be done with this thread before it waits for others */
	got = hub_take_early(hub, status_ret);
	if (got)
		return got;
	return hub_looks_by_id(hub) ? look_at_own(hub, status_ret) : wait_for_any(hub, sleeps, status_ret);
}

void hub_deal(struct kymo_hub *hub, pid_t tid, int status)
{
	if (tid == hub->sleep.waker) {
		hub_waker_stopped(hub, status);
	} else if (tid == hub->keeper.pid) {
		hub_keeper_ended(hub);
	} else {
		note_recent(hub, tid);
		hub_dispatch(hub, tid, status);
		hub_wait_for_spared(hub);
	}
}

bool hub_deal_with_next(struct kymo_hub *hub)
{
	int status;
	pid_t tid = hub_wait(hub, false, &status);

	if (tid > 0)
		hub_deal(hub, tid, status);
	return tid > 0;
}
