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

#define CALL_STOP (SIGTRAP | 0x80)

/*
 * Signals that can't be blocked go where they belong. A stopped process makes its call nevertheless. So does one with a
 * filter of its own that wants it traced, but recorders make no calls by a thread that has a filter.
 */
static int signal_for(struct kymo_hub *hub, struct task *task, int status)
{
	if (status >> 16 || WSTOPSIG(status) == CALL_STOP)
		return 0;
	hub_change_stop(task, STOP_SIGNAL);
	hub_signal_stopped(hub, task, WSTOPSIG(status));
	hub_change_stop(task, STOP_AWAY);
	return task->signal;
}

bool hub_calling_stopped(struct kymo_hub *hub, struct task *task, int status)
{
	bool is_at_call = !(status >> 16) && WSTOPSIG(status) == CALL_STOP;
	int signal;

	if (!task->remote_call)
		return false;
	if (status >> 16 == PTRACE_EVENT_EXIT || !task->remote_call->n_stops) {
		hub_forget_remote_call(task);
		return false;
	}
	hub_set_stop(task, STOP_AWAY);
	task->resumed.was_interrupted = false;
	if (is_at_call && !--task->remote_call->n_stops) {
		if (!task->remote_call->is_left)
			return true;
		hub_give_back(task); /* another owner may have it by now */
		hub_attend(hub, task);
		return true;
	}
	signal = signal_for(hub, task, status);
	hub_set_state(task, TASK_RUNNING);
	ptrace(PTRACE_SYSCALL, task->tid, 0, signal);
	return true;
}
