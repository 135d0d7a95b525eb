/* Threads of a hub that stop and go on, as their engines want. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>

#include "arch/remote.h"
#include "base/io.h"
#include "hub/engine.h"
#include "hub/forget.h"
#include "hub/report.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/states.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/disarm.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"
#include "procfs/disposition.h"
#include "procfs/memory.h"

#define EXIT_HOLD_NS (KYMO_EXIT_HOLD_MS * 1000000ull)

/* Whether it has to stop at each system call; else at picked ones, or at none. */
static bool wants_all_calls(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++) {
		const struct kymo_engine *engine = task->engines.items[i];
		bool is_content =
			task->process->has_filter && engine->events & KYMO_MASK_PICKED_CALLS && !engine->guest;

		if (!engine->is_detached && engine->events & EVENTS_OF_STOPS && !is_content)
			return true;
	}
	return false;
}

/* Under a filter: the exit is always fetched where the entry was, so that the stops of a call are known to be one
 * call's. */
static bool owes_exit(const struct task *task)
{
	return task->process->has_filter && task->call.is_entry_known;
}

static bool is_wanted_between(const struct task *task, enum kymo_action strongest, enum kymo_action weakest)
{
	for (size_t i = 0; i < task->engines.n; i++) {
		const struct kymo_engine *engine = task->engines.items[i];

		if (!engine->is_detached && engine->wants >= strongest && engine->wants <= weakest)
			return true;
	}
	return false;
}

static bool is_anything_owed(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached && task->engines.items[i]->owes_report)
			return true;
	return false;
}

static bool has_engines(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached)
			return true;
	return false;
}

static bool is_held(const struct task *task)
{
	return task->process->is_held || task->birth.has_maker || hub_is_still(task) ||
	       is_wanted_between(task, KYMO_ACTION_STOP, KYMO_ACTION_STOP);
}

bool hub_is_held(const struct task *task)
{
	return task->state == TASK_STOPPED && is_wanted_between(task, KYMO_ACTION_STOP, KYMO_ACTION_STOP);
}

bool hub_is_interrupted(const struct task *task)
{
	return is_wanted_between(task, KYMO_ACTION_INTERRUPT, KYMO_ACTION_INTERRUPT);
}

/* Whether it is the hub's without engines, too. */
static bool is_kept(const struct task *task)
{
	return task->process->has_filter || hub_space_keeps(task);
}

/* Whether it is to be the hub's any longer. */
static bool is_task_wanted(const struct task *task)
{
	return has_engines(task) || is_kept(task);
}

/* Whether a thread that is not stopped must be interrupted for a request of its engines. */
static bool has_to_stop(const struct task *task)
{
	bool is_listening = task->state == TASK_LISTENING;

	return (!is_task_wanted(task) && !task->process->is_held) || is_anything_owed(task) || task->must_freeze ||
	       (!is_listening && task->traps.has_stale_watch) ||
	       is_wanted_between(task, KYMO_ACTION_STOP, is_listening ? KYMO_ACTION_REPORT : KYMO_ACTION_BLOCKSTEP) ||
	       (!is_listening && !task->resumed.traces_calls && wants_all_calls(task));
}

/* What is wanted once becomes a promise to tell. The strongest. */
static enum kymo_action take_wanted(struct task *task)
{
	enum kymo_action strongest = KYMO_ACTION_RESUME;

	for (size_t i = 0; i < task->engines.n; i++) {
		struct kymo_engine *engine = task->engines.items[i];

		if (engine->is_detached || engine->wants >= KYMO_ACTION_RESUME)
			continue;
		if (engine->wants < strongest)
			strongest = engine->wants;
		engine->owes_report |= engine->wants <= KYMO_ACTION_REPORT;
		engine->owes_step |= engine->wants == KYMO_ACTION_SINGLESTEP || engine->wants == KYMO_ACTION_BLOCKSTEP;
		engine->wants = KYMO_ACTION_RESUME;
	}
	return strongest;
}

static bool is_step_owed(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached && task->engines.items[i]->owes_step)
			return true;
	return false;
}

static bool is_at_call(const struct task *task)
{
	const struct hub_memory *memory = hub_memory_of(task->process);
	struct user_regs_struct registers;
	uint8_t code[KYMO_REMOTE_CALL];

	if (!memory || kymo_get_registers(task->tid, &registers))
		return false;
	return kymo_remote_restarts(&registers) ||
	       (!kymo_memory_read(&memory->opened, registers.rip, code, sizeof(code)) && kymo_remote_is_call(code));
}

static bool is_blocked(const struct task *task, int signal)
{
	uint64_t mask;

	return !ptrace(PTRACE_GETSIGMASK, task->tid, sizeof(mask), &mask) && mask >> (signal - 1) & 1;
}

/* Where a handler is next, a step leads to its first instruction, and no call is made again before it has returned. A
 * signal that an engine has put in the place of another may be blocked, and waits then. */
static bool enters_handler(const struct task *task)
{
	return task->stop == STOP_SIGNAL && task->signal &&
	       kymo_signal_disposition(task->tid, task->signal) == KYMO_DISPOSITION_CAUGHT &&
	       !is_blocked(task, task->signal);
}

/* The stop a step begins at: within a system call already, or before an instruction. */
static long step_request(struct task *task, bool is_block)
{
	unsigned int events = hub_events(task);

	task->resumed.steps = true;
	if (enters_handler(task)) {
		task->resumed.steps_call = false;
		return PTRACE_SINGLESTEP;
	}
	task->resumed.steps_call = task->stop == STOP_ENTRY || owes_exit(task) ||
				   (events & EVENTS_OF_STOPS && (task->stop == STOP_EVENT || is_at_call(task)));
	if (task->resumed.steps_call)
		return PTRACE_SYSCALL;
	return is_block ? PTRACE_SINGLEBLOCK : PTRACE_SINGLESTEP;
}

/* A killed thread still comes to its exit event. Where any thread is waited for it is found there as an unclaimed
 * stop. */
static void let_go(struct kymo_hub *hub, struct task *task)
{
	hub_space_wake(task);
	hub_watches_clear(hub, task, true);
	if (ptrace(PTRACE_DETACH, task->tid, 0, task->stop == STOP_SIGNAL ? task->signal : 0) && hub->is_here &&
	    !hub->waits_for_any)
		hub_set_state(task, TASK_RUNNING);
	else
		hub_forget_task(hub, task);
}

/* From its exit event. What comes now is its end. */
static void go_to_end(struct kymo_hub *hub, struct task *task)
{
	hub_end_hold(hub, task);
	hub_set_state(task, TASK_ENDING);
	ptrace(PTRACE_CONT, task->tid, 0, 0);
	hub_report_death(hub, task, task->end.status);
}

/*
 * At the entry of a call that waits: that ends because of an interrupt, which this stop has replaced and which is no
 * longer reported. It also ends because of detaching here, which is a signal to the kernel. So there has to be another
 * stop, in which that is repaired; it is asked for while the thread still stands, as the call is over at once.
 */
static bool needs_other_stop(const struct task *task)
{
	return task->stop == STOP_ENTRY && (task->ends_interrupt || !is_task_wanted(task));
}

/* To tell a step. Whether the group stop lasts is not known. */
static bool has_left_group_stop(const struct task *task)
{
	return task->stop == STOP_SIGNAL && task->group_stop;
}

/* Only when it leaves another stop does the kernel check whether to restart an earlier call, and whether the process is
 * stopped. */
static void come_back(struct kymo_hub *hub, struct task *task)
{
	hub_set_state(task, TASK_RUNNING);
	task->resumed.traces_calls = false;
	hub_interrupt(hub, task);
	ptrace(PTRACE_CONT, task->tid, 0, 0);
}

static void continue_task(struct kymo_hub *hub, struct task *task)
{
	enum kymo_action wanted = take_wanted(task);
	bool wants_step = wanted == KYMO_ACTION_SINGLESTEP || wanted == KYMO_ACTION_BLOCKSTEP || is_step_owed(task);
	bool traces_calls = wants_all_calls(task);
	long request = traces_calls || owes_exit(task) ? PTRACE_SYSCALL : PTRACE_CONT;
	int signal = task->stop == STOP_SIGNAL ? task->signal : 0;
	/* The call is over at once, and so it reports before its program has executed an instruction, however late this
	 * thread runs next. */
	const bool is_at_once = wanted <= KYMO_ACTION_REPORT && task->stop == STOP_EVENT && !wants_step;

	hub_space_wake(task);
	hub_watches_clear(hub, task, false);
	task->resumed.traces_calls = traces_calls;
	/* Before it runs. One that has left a group stop, the kernel takes back to where its process is; one that is
	 * must freeze would make an interrupted call again, and be at its entry. */
	if (has_left_group_stop(task) || task->must_freeze || needs_other_stop(task))
		hub_interrupt(hub, task);
	if (task->stop == STOP_TRAP && task->group_stop) {
		hub_set_state(task, TASK_LISTENING);
		ptrace(PTRACE_LISTEN, task->tid, 0, 0);
	} else {
		hub_set_state(task, TASK_RUNNING);
		task->resumed.steps = task->resumed.steps_call = false;
		if (!signal && hub_step_over(hub, task, wants_step))
			return; /* another stop has come, which serves what is wanted */
		if (wants_step)
			request = step_request(task, wanted == KYMO_ACTION_BLOCKSTEP);
		if (request != PTRACE_SYSCALL) /* the end of a call that it has entered is not seen */
			task->call.is_entry_known = task->call.is_aborted = false;
		if (is_at_once)
			hub_interrupt(hub, task);
		if (ptrace(request, task->tid, 0, signal) && errno == EIO && request == PTRACE_SINGLEBLOCK)
			ptrace(PTRACE_SINGLESTEP, task->tid, 0, signal);
		task->resumed.makes_call_again &= request == PTRACE_SYSCALL;
		if (task->resumed.makes_call_again)
			hub_expect(hub, task);
	}
	if (wanted <= KYMO_ACTION_REPORT && !is_at_once)
		hub_interrupt(hub, task);
}

/* Engines that have left a thread that stays traced are released when it runs. */
static void release_left(struct kymo_hub *hub, struct task *task)
{
	if (!task->leavers.n)
		return;
	hub_release_leavers(hub, task);
	pthread_cond_broadcast(&hub->changed);
}

/* A step may be done, or a breakpoint executed, and the signal be waiting after an interrupt or a group stop. Let go
 * so, the thread would die of it. */
static bool is_step_on_its_way(const struct task *task)
{
	struct __ptrace_peeksiginfo_args args = { .nr = 1 };
	bool is_possible = task->resumed.steps || task->process->space || task->traps.had_watches;
	siginfo_t info;

	while (is_possible && ptrace(PTRACE_PEEKSIGINFO, task->tid, &args, &info) == 1) {
		if ((task->resumed.steps && hub_is_of_step(&info)) || hub_is_trap_of_ours(task, &info))
			return true;
		args.off++;
	}
	return false;
}

bool hub_waits_for_step(struct task *task)
{
	if (task->stop != STOP_TRAP || !is_step_on_its_way(task))
		return false;
	hub_set_state(task, TASK_RUNNING);
	task->resumed.was_interrupted = true; /* a stop is coming; an interrupt would come before it, again and again */
	ptrace(PTRACE_CONT, task->tid, 0, 0);
	return true;
}

void hub_settle(struct kymo_hub *hub, struct task *task)
{
	if (task->state != TASK_STOPPED)
		return;
	if (task->stop == STOP_ENDING) {
		if (is_held(task) && !task->end.hold_deadline_ns) {
			task->end.hold_deadline_ns = kymo_now_ns() + EXIT_HOLD_NS;
			hub->tasks.n_ending++;
		}
		if (!is_held(task))
			go_to_end(hub, task);
		return;
	}
	if (is_held(task)) {
		hub_space_rest(hub, task);
		return;
	}
	if (task->stop == STOP_AWAY && is_task_wanted(task))
		come_back(hub, task);
	else if (is_task_wanted(task) || needs_other_stop(task) || task->must_freeze)
		continue_task(hub, task);
	else if (!hub_waits_for_step(task))
		return let_go(hub, task);
	if (is_kept(task) && !has_engines(task))
		release_left(hub, task);
}

void hub_attend(struct kymo_hub *hub, struct task *task)
{
	hub_purge_engines(hub, task);
	if (task->remote_call)
		return; /* it is looked at when it has come back */
	switch (task->state) {
	case TASK_RUNNING:
	case TASK_LISTENING:
		if (!task->resumed.was_interrupted && !task->birth.is_newborn && !task->resumed.is_fetched &&
		    has_to_stop(task))
			hub_interrupt(hub, task);
		if (is_kept(task))
			release_left(hub, task);
		return;
	case TASK_STOPPED:
		hub_report_owed(hub, task, false);
		hub_settle(hub, task);
		return;
	case TASK_ENDING:
		return;
	}
}
