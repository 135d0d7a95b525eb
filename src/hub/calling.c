/* What a thread stops for while it makes a remote call. freeze/remote_call.c has the calls. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "hub/calling.h"
#include "hub/run.h"
#include "hub/signal.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/states.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"

#define CALL_STOP (SIGTRAP | 0x80)

/*
 * A signal of the number that ends a batch comes from outside where the batch is not over. It would do nothing, so it
 * is dropped, and no engine is asked: one that would have it sent again would keep the thread there.
 *
 * Signals that can't be blocked go where they belong. A stopped process makes its call nevertheless. So does one with a
 * filter of its own that wants it traced, but recorders make no calls by a thread that has a filter.
 */
static int signal_for(struct kymo_hub *hub, struct task *task, int status)
{
	if (status >> 16 || WSTOPSIG(status) == CALL_STOP || WSTOPSIG(status) == task->remote_call->signal)
		return 0;
	hub_change_stop(task, STOP_SIGNAL);
	hub_signal_stopped(hub, task, WSTOPSIG(status));
	hub_change_stop(task, STOP_AWAY);
	return task->signal;
}

/* A batch that has got no signal at its end, as something refuses that: the thread is home, and has its registers. */
static bool has_gone_home(const struct task *task)
{
	const struct hub_remote_call *call = task->remote_call;
	struct user_regs_struct registers;

	return call->signal && !kymo_get_registers(task->tid, &registers) &&
	       (registers.rip < call->call_at || registers.rip > call->call_end);
}

/* Its last call was made: the second stop at one, or the signal at the end of a batch. Another signal of that number
 * comes at another instruction. */
static bool is_over(struct task *task, int status)
{
	struct hub_remote_call *call = task->remote_call;
	struct user_regs_struct registers;

	if (status >> 16)
		return false;
	if (!call->signal)
		return WSTOPSIG(status) == CALL_STOP && !--call->n_stops;
	if (WSTOPSIG(status) != call->signal || kymo_get_registers(task->tid, &registers) ||
	    registers.rip != call->call_end)
		return false;
	call->n_stops = 0;
	return true;
}

bool hub_calling_stopped(struct kymo_hub *hub, struct task *task, int status)
{
	bool is_batch;
	int signal;

	if (!task->remote_call)
		return false;
	if (status >> 16 == PTRACE_EVENT_EXIT || !task->remote_call->n_stops || has_gone_home(task)) {
		hub_forget_remote_call(task);
		return false;
	}
	hub_set_stop(task, STOP_AWAY);
	task->resumed.was_interrupted = false;
	if (is_over(task, status)) {
		if (!task->remote_call->is_left)
			return true;
		hub_give_back(task); /* another owner may have it by now */
		hub_attend(hub, task);
		return true;
	}
	is_batch = task->remote_call->signal;
	signal = signal_for(hub, task, status);
	hub_set_state(task, TASK_RUNNING);
	ptrace(is_batch ? PTRACE_CONT : PTRACE_SYSCALL, task->tid, 0, signal);
	return true;
}
