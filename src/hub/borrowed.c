/* What a thread stops for while it makes a call for the holder of its process. freeze/borrow.c has the calls. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "hub/borrowed.h"
#include "hub/run.h"
#include "hub/signal.h"
#include "hub/state.h"
#include "hub/thread/claim.h"
#include "hub/thread/task.h"

#define CALL_STOP (SIGTRAP | 0x80)

/*
 * Signals that can't be blocked go where they belong. A stopped process makes its call nevertheless. So does one with a
 * filter of its own that wants it traced, but recorders borrow no thread that has a filter.
 */
static int signal_for(struct kymo_hub *hub, struct task *task, int status)
{
	if (status >> 16 || WSTOPSIG(status) == CALL_STOP)
		return 0;
	task->stop = STOP_SIGNAL;
	hub_signal_stopped(hub, task, WSTOPSIG(status));
	task->stop = STOP_AWAY;
	return task->signal;
}

bool hub_borrowed_stopped(struct kymo_hub *hub, struct task *task, int status)
{
	bool is_at_call = !(status >> 16) && WSTOPSIG(status) == CALL_STOP;
	int signal;

	if (!task->borrow)
		return false;
	if (status >> 16 == PTRACE_EVENT_EXIT || !task->borrow->n_stops) {
		hub_forget_borrow(task);
		return false;
	}
	task->state = TASK_STOPPED;
	task->resumed.was_interrupted = false;
	if (is_at_call && !--task->borrow->n_stops) {
		if (!task->borrow->is_left)
			return true;
		hub_give_back(task); /* somebody else may hold it by now */
		hub_attend(hub, task);
		return true;
	}
	signal = signal_for(hub, task, status);
	task->state = TASK_RUNNING;
	ptrace(PTRACE_SYSCALL, task->tid, 0, signal);
	return true;
}
