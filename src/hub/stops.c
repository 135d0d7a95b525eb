/* What wait statuses mean. docs/internals/engines.md has the table. */
#include <linux/audit.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "hub/calling.h"
#include "hub/filter.h"
#include "hub/look.h"
#include "hub/report.h"
#include "hub/run.h"
#include "hub/signal.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/adopt.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/states.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/pad.h"
#include "hub/trap/keeper.h"
#include "hub/trap/space.h"
#include "hub/trap/watch.h"
#include "hub/undo.h"
#include "kymo/engine.h"
#include "procfs/disposition.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define UNCLAIMED_NS 2000000000ull
#define CALL_STOP (SIGTRAP | 0x80)
#define I386_CLONE 120

static unsigned long message_of(pid_t tid)
{
	unsigned long message;

	return ptrace(PTRACE_GETEVENTMSG, tid, 0, &message) ? 0 : message;
}

/* ---- births ---------------------------------------------------------------------------------- */

static bool take_unclaimed(struct kymo_hub *hub, pid_t tid, int *status_ret)
{
	for (size_t i = 0; i < hub->statuses.unclaimed.n; i++) {
		if (hub->statuses.unclaimed.items[i].tid != tid)
			continue;
		*status_ret = hub->statuses.unclaimed.items[i].status;
		hub->statuses.unclaimed.items[i] = hub->statuses.unclaimed.items[--hub->statuses.unclaimed.n];
		return true;
	}
	return false;
}

static void add_unclaimed(struct kymo_hub *hub, pid_t tid, int status)
{
	struct hub_status stop = { tid, status, kymo_now_ns() };
	int before;

	take_unclaimed(hub, tid, &before);
	if (!kymo_vec_push(&hub->statuses.unclaimed, stop))
		hub_abandon(hub, tid);
}

static struct task *get_child(struct kymo_hub *hub, struct task *maker, pid_t tid, bool is_thread)
{
	struct task *child = hub_find(hub, tid);
	struct hub_process *process;

	if (!child) {
		process = is_thread ? maker->process : hub_get_process(hub, tid);
		child = process ? hub_add_task(hub, process, tid) : NULL;
		if (child)
			child->birth.is_newborn = child->birth.has_maker = true;
		else if (process)
			hub_put_process(hub, process);
	}
	if (child)
		child->process->has_filter |= maker->process->has_filter;
	return child;
}

static void cloned(struct kymo_hub *hub, struct task *task, int event)
{
	struct kymo_clone_report report = { .child = (pid_t)message_of(task->tid) };
	bool is_thread = report.child && !syscall(SYS_tgkill, task->process->pid, report.child, 0);
	struct task *child = report.child ? get_child(hub, task, report.child, is_thread) : NULL;
	int status;

	if (!child)
		return; /* the maker was killed: the stop of the child is unclaimed until its time is over */
	report.kind = is_thread                     ? KYMO_CLONE_THREAD
		      : event == PTRACE_EVENT_VFORK ? KYMO_CLONE_VFORK
						    : KYMO_CLONE_PROCESS;
	if (!is_thread)
		hub_space_born(hub, task->process, child->process, event == PTRACE_EVENT_VFORK);
	hub_report_clone(hub, task, &report);
	child->birth.has_maker = false;
	if (take_unclaimed(hub, report.child, &status))
		hub_dispatch(hub, report.child, status);
	else
		hub_kick(hub, child);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void reap(struct kymo_hub *hub, struct task *task, int status)
{
	hub_set_state(task, TASK_ENDING);
	if (!task->end.was_told)
		hub_report_death(hub, task, status);
	hub_report_reap(hub, task, status);
}

static void ended(struct kymo_hub *hub, pid_t tid, int status)
{
	struct task *task = hub_find(hub, tid);
	struct hub_process *process = hub_find_process(hub, tid);
	bool is_launched = process && process->is_launched; /* else it may go with its last task */
	int before;

	take_unclaimed(hub, tid, &before);
	if (task)
		reap(hub, task, status);
	if (is_launched) {
		process->has_ended = true;
		process->status = status;
	}
	if (hub->awaited && hub->awaited->pid == tid)
		*hub->awaited = (struct hub_awaited){ tid, true, status };
}

static void ending(struct kymo_hub *hub, struct task *task)
{
	unsigned long status;

	if (!ptrace(PTRACE_GETEVENTMSG, task->tid, 0, &status))
		task->end.status = (int)status;
	task->group_stop = 0;
	hub_report_exit(hub, task, task->end.status);
}

/* ---- exec ------------------------------------------------------------------------------------ */

/* The kernel has taken away all threads but the one that executes; their ends were told before, but the first one's. */
static void take_away_others(struct kymo_hub *hub, struct hub_process *process, const struct task *executing)
{
	for (;;) {
		struct task *other = process->tasks;

		while (other && other == executing)
			other = other->in_process;
		if (!other)
			return;
		other->end.superseded_by = executing->tid;
		reap(hub, other, SIGKILL);
	}
}

static void begin_stop(struct kymo_hub *hub, struct task *task, enum task_stop stop)
{
	if (task->state == TASK_STOPPED) /* the kernel has woken it, to end */
		hub_break_stops(task);
	hub_set_stop(task, stop);
	task->stop_serial = ++hub->counts.stops;
	task->signal = 0;
	task->ends_interrupt =
		task->resumed.was_interrupted; /* whichever stop comes first: the kernel forgets the other one */
	task->resumed.was_interrupted = task->birth.is_newborn = task->resumed.makes_call_again =
		task->traps.knows_registers = false;
}

/* A thread that was seized between its exec and the event of that is known by its new id alone. */
static struct task *find_executing(struct kymo_hub *hub, pid_t pid, pid_t *former_tid)
{
	struct task *task = *former_tid ? hub_find(hub, *former_tid) : NULL;

	if (task || !*former_tid)
		return task;
	task = hub_find(hub, pid);
	if (!task)
		return NULL;
	task->birth.has_maker = false;
	*former_tid = pid;
	return task;
}

static void execed(struct kymo_hub *hub, pid_t pid)
{
	pid_t former_tid = (pid_t)message_of(pid);
	struct task *task = find_executing(hub, pid, &former_tid);

	if (!task) {
		if (former_tid)
			hub_abandon(hub, pid);
		return; /* without a maker, or killed meanwhile */
	}
	hub_forget_remote_call(task);
	begin_stop(hub, task, STOP_EVENT);
	take_away_others(hub, task->process, task);
	if (former_tid != pid)
		hub_rekey_task(hub, task, pid);
	hub_space_leave(hub, task->process);
	hub_watches_forget(hub, task);
	hub_breakpoint_passed(task);
	task->group_stop = 0;
	hub_report_to_guests(hub, task);
	hub_report_exec(hub, task, former_tid);
	hub_report_owed(hub, task, false);
	hub_settle(hub, task);
}

/* ---- stops ----------------------------------------------------------------------------------- */

static void trapped(struct kymo_hub *hub, struct task *task, int signal)
{
	int before = task->group_stop;

	task->group_stop = signal == SIGTRAP ? 0 : signal;
	if (!before && !task->group_stop)
		hub_undo_interruption(task, 0);
	if (task->group_stop && task->group_stop != before)
		hub_report_jctl(hub, task, task->group_stop);
	if (before && !task->group_stop)
		hub_report_jctl(hub, task, SIGCONT);
}

/* In the program's memory. */
static bool wants_no_tracer(struct task *task)
{
	struct hub_memory *memory = hub_memory_of(task->process);
	uint64_t flags;

	return memory && !kymo_memory_read(&memory->opened, task->call.args[0], &flags, sizeof(flags)) &&
	       flags & CLONE_UNTRACED;
}

/* Children that are made so have no tracer. Where the flags are in memory, they stay as they are: it is the program's;
 * but a child with our filter needs one. */
static void keep_child(struct task *task)
{
	struct kymo_syscall_report *call = &task->call;
	uint64_t clone = call->arch == AUDIT_ARCH_I386 ? I386_CLONE : SYS_clone;

	if (call->number == SYS_clone3 && task->process->has_filter && wants_no_tracer(task)) {
		call->is_aborted = true; /* ENOSYS, as by older kernels */
		return;
	}
	if (call->number != clone || !(call->args[0] & CLONE_UNTRACED) ||
	    !(task->process->has_filter || hub_events(task) & KYMO_EVENT_CLONE))
		return;
	call->args[0] &= ~(uint64_t)CLONE_UNTRACED;
	hub_set_call(task, call->number, call->args);
}

static void entered(struct kymo_hub *hub, struct task *task)
{
	task->call.is_entry_known = true;
	hub_report_syscall(hub, task, KYMO_EVENT_SYSCALL_ENTRY);
	if (!task->call.is_aborted)
		keep_child(task);
	if (task->call.is_aborted)
		hub_set_call(task, (uint64_t)-1, task->call.args);
}

/*
 * A filter has picked the call. Where the thread stops at all calls, it has stood at the entry of this one before. What
 * a filter of the program's own wants to have traced fails with ENOSYS, as it would without us.
 */
static void picked(struct kymo_hub *hub, struct task *task)
{
	bool was_told = task->call.is_entry_known;

	hub_change_stop(task, was_told ? STOP_ENTRY : hub_read_call(task));
	if (task->stop != STOP_ENTRY)
		return; /* it was killed */
	if (!was_told)
		entered(hub, task);
	if (message_of(task->tid) != HUB_FILTER_MARK)
		hub_set_call(task, (uint64_t)-1, task->call.args);
}

/* Whether a step is done with that. */
static bool call_stopped(struct kymo_hub *hub, struct task *task)
{
	hub_change_stop(task, hub_read_call(task));
	if (task->stop == STOP_ENTRY) {
		entered(hub, task);
	} else if (task->stop == STOP_EXIT) {
		hub_report_syscall(hub, task, KYMO_EVENT_SYSCALL_EXIT);
		if (task->ends_interrupt)
			hub_undo_interruption(task, 0);
		task->call.is_entry_known = task->call.is_aborted = false;
		return task->resumed.steps_call;
	}
	return false;
}

static bool is_step(const struct task *task, int signal)
{
	siginfo_t info;

	return task->resumed.steps && signal == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) &&
	       hub_is_of_step(&info);
}

static enum task_stop stop_of(int event)
{
	switch (event) {
	case 0:
		return STOP_SIGNAL;
	case PTRACE_EVENT_STOP:
		return STOP_TRAP;
	case PTRACE_EVENT_EXIT:
		return STOP_ENDING;
	default:
		return STOP_EVENT;
	}
}

static bool took_watch(struct kymo_hub *hub, struct task *task, bool is_step, int *group_ret)
{
	struct kymo_signal_report report;
	unsigned int hits;

	if (!hub_watch_stopped(hub, task, is_step, &hits, group_ret))
		return false;
	for (unsigned int slot = 0; slot < KYMO_WATCH_SLOTS; slot++)
		if (hits >> slot & 1 && hub_watch_report(task, slot, &report))
			hub_report_trap(hub, task, &report, hub_watch_is_owner);
	return true;
}

static bool took_breakpoint(struct kymo_hub *hub, struct task *task, int *group_ret)
{
	struct kymo_signal_report report;

	if (!hub_breakpoint_stopped(hub, task, &report, group_ret))
		return false;
	if (report.kind)
		hub_report_trap(hub, task, &report, hub_breakpoint_is_owner);
	return true;
}

/* A SIGTRAP that is the hub's own business: of a step, a breakpoint, a debug register. False: it is the program's. */
static bool took_trap(struct kymo_hub *hub, struct task *task, bool *is_step_done)
{
	int group_stop = 0;

	*is_step_done = is_step(task, SIGTRAP);
	if (!took_watch(hub, task, *is_step_done, &group_stop) &&
	    (*is_step_done || !took_breakpoint(hub, task, &group_stop)))
		return *is_step_done;
	if (group_stop && task->state == TASK_STOPPED)
		trapped(hub, task, group_stop);
	return true;
}

/* The code of a pad has faulted, which the program is not told. */
static bool took_fault(struct kymo_hub *hub, struct task *task, int signal)
{
	int group_stop = 0;

	if ((signal != SIGSEGV && signal != SIGBUS) || !hub_may_be_in_pad(task) || task->traps.passes_own ||
	    !took_breakpoint(hub, task, &group_stop))
		return false;
	if (group_stop && task->state == TASK_STOPPED)
		trapped(hub, task, group_stop);
	return true;
}

static void stopped(struct kymo_hub *hub, struct task *task, int status)
{
	int event = status >> 16, signal = WSTOPSIG(status);
	bool is_step_done = false;

	begin_stop(hub, task, stop_of(event));
	if (signal == SIGTRAP && hub_waits_for_step(task)) /* in a group stop it waits */
		return;
	hub_breakpoint_look(task);
	hub_pad_bring_out(task);
	hub_breakpoint_look_again(task);
	switch (event) {
	case PTRACE_EVENT_STOP:
		trapped(hub, task, signal);
		break;
	case PTRACE_EVENT_EXIT:
		ending(hub, task);
		break;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		cloned(hub, task, event);
		break;
	case PTRACE_EVENT_SECCOMP:
		picked(hub, task);
		break;
	case 0:
		if (signal == CALL_STOP)
			is_step_done = call_stopped(hub, task);
		else if (!(signal == SIGTRAP && took_trap(hub, task, &is_step_done)) && !took_fault(hub, task, signal))
			hub_signal_stopped(hub, task, signal);
		break;
	}
	if (task->state != TASK_STOPPED)
		return; /* it was killed while its signal was taken from it, which is told next */
	if (is_step_done)
		hub_breakpoint_stepped(task);
	hub_forget_lost_signals(hub, task);
	hub_report_owed(hub, task, is_step_done);
	hub_settle(hub, task);
}

static bool is_thread(pid_t tid)
{
	return kymo_process_of(tid, NULL) != tid;
}

/*
 * A thread that ends before its maker has told of it was killed with its process, or by an exec, which waits for its
 * end: so was the maker, which tells nothing any more. True: it is not known. A process may have been killed alone.
 */
static bool was_killed_newborn(struct kymo_hub *hub, struct task *task, pid_t tid, int status)
{
	int before;

	if (status >> 16 != PTRACE_EVENT_EXIT ||
	    (task ? !task->birth.has_maker || tid == task->process->pid : !is_thread(tid)))
		return false;
	take_unclaimed(hub, tid, &before);
	if (task)
		task->birth.has_maker = false;
	else
		ptrace(PTRACE_DETACH, tid, 0, 0);
	return !task;
}

static void dispatch(struct kymo_hub *hub, pid_t tid, int status)
{
	struct task *task = hub_find(hub, tid);

	if (task && task->resumed.is_fetched)
		hub_forget_status(hub, task); /* of a stop in which it was killed */
	if (WIFSTOPPED(status) && was_killed_newborn(hub, task, tid, status))
		return;
	if (!WIFSTOPPED(status)) {
		ended(hub, tid, status);
	} else if (status >> 16 == PTRACE_EVENT_EXEC) {
		execed(hub, tid);
	} else if (!task) {
		add_unclaimed(hub, tid, status);
	} else if (task->birth.has_maker) {
		task->birth.is_newborn = false;
		add_unclaimed(hub, tid, status);
	} else if (!hub_calling_stopped(hub, task, status)) {
		stopped(hub, task, status);
	}
}

void hub_dispatch(struct kymo_hub *hub, pid_t tid, int status)
{
	hub->depth++;
	dispatch(hub, tid, status);
	hub->depth--;
}

/* ---- the clock ------------------------------------------------------------------------------- */

bool hub_needs_clock(const struct kymo_hub *hub)
{
	return hub->statuses.unclaimed.n || hub->tasks.n_ending || hub_lacks_keeper(hub) || hub_space_needs_clock(hub);
}

/* Its maker was killed before it could tell. */
static void no_maker_comes(struct kymo_hub *hub, const struct hub_status *stop)
{
	struct task *task;

	hub_space_clean_unclaimed(hub, stop->tid);
	if (hub->user.on_orphan && !hub_find(hub, stop->tid)) {
		hub->depth++;
		pthread_mutex_unlock(&hub->lock);
		hub->user.on_orphan(hub->user.data, stop->tid);
		pthread_mutex_lock(&hub->lock);
		hub->depth--;
	}
	task = hub_find(hub, stop->tid);
	if (!task) {
		hub_abandon(hub, stop->tid);
		return;
	}
	task->birth.has_maker = false;
	hub_dispatch(hub, stop->tid, stop->status);
}

static void end_long_holds(struct kymo_hub *hub, uint64_t now)
{
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket) {
			if (!task->end.hold_deadline_ns || now < task->end.hold_deadline_ns)
				continue;
			hub_break_stops(task);
			hub_kick(hub, task);
		}
}

static void look_at_unclaimed(struct kymo_hub *hub, uint64_t now)
{
	for (size_t i = 0; i < hub->statuses.unclaimed.n;) {
		struct hub_status stop = hub->statuses.unclaimed.items[i];

		if (now - stop.since_ns < UNCLAIMED_NS) {
			i++;
			continue;
		}
		hub->statuses.unclaimed.items[i] = hub->statuses.unclaimed.items[--hub->statuses.unclaimed.n];
		no_maker_comes(hub, &stop);
	}
}

void hub_look_at_clock(struct kymo_hub *hub, bool is_idle)
{
	uint64_t now = hub_needs_clock(hub) ? kymo_now_ns() : 0;

	if (is_idle)
		look_at_unclaimed(hub, now);
	if (hub->tasks.n_ending)
		end_long_holds(hub, now);
	if (hub_lacks_keeper(hub))
		hub_get_keeper(hub);
	if (now)
		hub_space_look_at_clock(hub, now);
}
