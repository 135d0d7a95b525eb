/* Threads that stand still for the holder of their process, and what was borrowed from them. */
#include <stdlib.h>

#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/claim.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"

bool hub_is_still(const struct task *task)
{
	return task->is_claimed && task->state == TASK_STOPPED && (task->stop == STOP_TRAP || task->stop == STOP_AWAY);
}

/* A request about a thread that has stopped a moment ago is the dearest part of a stop. Engines and breakpoints may
 * change registers, too. */
void hub_hold_note(struct task *task, const struct user_regs_struct *registers)
{
	const struct hub_holder *holder = task->process->holder;

	if (!task->is_claimed || task->borrow || !holder || !holder->takes || task->engines.n || task->process->space)
		return;
	task->traps.told = *registers;
	task->traps.knows_registers = true;
}

struct hub_process *hub_held_process(struct kymo_hub *hub, const struct hub_holder *holder)
{
	struct hub_process *process = holder->held ? hub_find_process(hub, holder->held) : NULL;

	return process && process->holder == holder ? process : NULL;
}

void hub_forget_borrow(struct task *task)
{
	free(task->borrow);
	task->borrow = NULL;
}

int hub_give_back(struct task *task)
{
	const struct hub_borrow *borrow = task->borrow;
	int err = borrow->has_own ? kymo_set_mask(task->tid, borrow->mask) : 0;

	if (!err && borrow->has_own)
		err = kymo_set_registers(task->tid, &borrow->own);
	task->traps.knows_registers = false;
	hub_forget_borrow(task);
	return err;
}

void hub_borrow_leave(struct task *task)
{
	if (!task->borrow)
		return;
	task->borrow->is_left = true;
	if (!task->borrow->n_stops)
		hub_give_back(task);
}

bool hub_calls_at(const struct hub_process *process, uint64_t address)
{
	for (const struct task *task = process->tasks; task; task = task->in_process)
		if (task->borrow && task->borrow->n_stops && task->borrow->call_at == address)
			return true;
	return false;
}

void hub_hold_take(struct hub_process *process)
{
	process->holder = process->keeper;
	process->keeper->held = process->pid;
	process->is_first_held = process->is_owed = false;
}

/* Those that are claimed for nobody else run on. */
void hub_hold_cancel(struct kymo_hub *hub, struct hub_holder *holder)
{
	struct hub_process *process = holder->kept ? hub_find_process(hub, holder->kept) : NULL;

	if (!process || process->keeper != holder || !process->is_owed)
		return;
	process->is_owed = false;
	for (struct task *task = process->is_first_held ? process->tasks : NULL; task; task = task->in_process) {
		task->is_claimed = task->tid == process->pid || task->tid == process->second_held;
		hub_kick(hub, task);
	}
}

void hub_hold_end(struct kymo_hub *hub, struct hub_holder *holder)
{
	struct hub_process *process = hub_held_process(hub, holder);

	holder->held = 0;
	hub_hold_cancel(hub, holder);
	if (!process)
		return;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->is_claimed = process->is_owed;
		hub_borrow_leave(task);
		hub_kick(hub, task);
	}
	process->holder = NULL;
	if (process->is_owed)
		hub_hold_take(process);
	else
		hub_put_process(hub, process);
}
