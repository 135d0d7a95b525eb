/* Making a thread stop. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "hub/state.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/replaced.h"
#include "hub/thread/states.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"

#define SWALLOW_NS 2000000000ull

void hub_interrupt(struct kymo_hub *hub, struct task *task)
{
	task->resumed.was_interrupted = true;
	if (ptrace(PTRACE_INTERRUPT, task->tid, 0, 0) && errno == ESRCH && task->tid == task->process->pid)
		hub_was_replaced(hub, task->tid); /* then its end is kept, and told next */
	hub_expect(hub, task);
}

static bool is_event_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP;
}

/* A thread that another thread's core dump keeps from stopping, say, stops there later, and comes to it again.
 */
bool hub_swallow(struct kymo_hub *hub, struct task *task, int *group_ret)
{
	int status;

	hub_set_state(task, TASK_RUNNING);
	hub_interrupt(hub, task);
	ptrace(PTRACE_CONT, task->tid, 0, 0);
	if (!hub_fetch(hub, task, SWALLOW_NS, &status) || !is_event_stop(status))
		return false;
	hub_forget_status(hub, task);
	task->resumed.was_interrupted = false;
	hub_set_stop(task, STOP_TRAP);
	*group_ret = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	return true;
}
