/* Threads of a frozen process, and what is saved of those that make remote calls. */
#include <stdlib.h>

#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"

bool hub_is_still(const struct task *task)
{
	return task->must_freeze && task->state == TASK_STOPPED && (task->stop == STOP_TRAP || task->stop == STOP_AWAY);
}

/* A request about a thread that has just stopped is the most expensive part of a stop. Engines and breakpoints may
 * change registers, too. */
void hub_freeze_note(struct task *task, const struct user_regs_struct *registers)
{
	const struct hub_owner *owner = task->process->owner;

	if (!task->must_freeze || task->remote_call || !owner || !owner->takes || task->engines.n ||
	    task->process->space)
		return;
	task->traps.told = *registers;
	task->traps.knows_registers = true;
}

struct hub_process *hub_frozen_process(struct kymo_hub *hub, const struct hub_owner *owner)
{
	struct hub_process *process = owner->frozen ? hub_find_process(hub, owner->frozen) : NULL;

	return process && process->owner == owner ? process : NULL;
}

void hub_forget_remote_call(struct task *task)
{
	if (task->remote_call)
		free(task->remote_call->xstate);
	free(task->remote_call);
	task->remote_call = NULL;
}

struct user_regs_struct *hub_own_registers(const struct task *task)
{
	return task->remote_call && task->remote_call->has_own ? &task->remote_call->own : NULL;
}

int hub_give_back(struct task *task)
{
	const struct hub_remote_call *call = task->remote_call;
	int err = call->has_own ? kymo_set_mask(task->tid, call->mask) : 0;

	if (!err && call->has_own)
		err = kymo_set_registers(task->tid, &call->own);
	if (!err && call->has_new_xstate)
		err = kymo_set_xstate(task->tid, call->xstate, call->xstate_size);
	task->traps.knows_registers = false;
	hub_forget_remote_call(task);
	return err;
}

void hub_remote_call_leave(struct kymo_hub *hub, struct task *task)
{
	if (!task->remote_call)
		return;
	task->remote_call->is_left = true;
	if (!task->remote_call->n_stops)
		hub_give_back(task);
	else if (task->remote_call->signal && task->state == TASK_RUNNING)
		hub_interrupt(hub, task); /* its signal may have been refused, and the thread be home */
}

bool hub_calls_at(const struct hub_process *process, uint64_t address)
{
	for (const struct task *task = process->tasks; task; task = task->in_process)
		if (task->remote_call && task->remote_call->n_stops && task->remote_call->call_at <= address &&
		    address <= (task->remote_call->signal ? task->remote_call->call_end : task->remote_call->call_at))
			return true;
	return false;
}

void hub_freeze_take(struct hub_process *process)
{
	process->owner = process->follower;
	process->follower->frozen = process->pid;
	process->is_first_frozen = process->is_owed = false;
}

/* Threads that must freeze for no other owner run on. */
void hub_freeze_cancel(struct kymo_hub *hub, struct hub_owner *owner)
{
	struct hub_process *process = owner->followed ? hub_find_process(hub, owner->followed) : NULL;

	if (!process || process->follower != owner || !process->is_owed)
		return;
	process->is_owed = false;
	for (struct task *task = process->is_first_frozen ? process->tasks : NULL; task; task = task->in_process) {
		task->must_freeze = task->tid == process->pid || task->tid == process->second_frozen;
		hub_kick(hub, task);
	}
}

void hub_freeze_end(struct kymo_hub *hub, struct hub_owner *owner)
{
	struct hub_process *process = hub_frozen_process(hub, owner);

	owner->frozen = 0;
	hub_freeze_cancel(hub, owner);
	if (!process)
		return;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->must_freeze = process->is_owed;
		hub_remote_call_leave(hub, task);
		hub_kick(hub, task);
	}
	process->owner = NULL;
	if (process->is_owed)
		hub_freeze_take(process);
	else
		hub_put_process(hub, process);
}
