/* The threads that run in a space: stopping them, and removing its breakpoints while none of them can run. */
#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "hub/state.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/disarm.h"
#include "hub/trap/keeper.h"
#include "procfs/threads.h"

#define HOLD_NS 1000000000ull
#define PATIENT_SPINS 64

static bool is_beside(const struct hub_process *one, const struct hub_process *other)
{
	return one == other || (one->space && one->space == other->space);
}

static bool may_run(const struct task *task)
{
	return task->state == TASK_RUNNING && !task->resumed.is_fetched && !task->birth.is_newborn &&
	       !task->birth.has_maker;
}

/* Interrupted, it can sleep on in the kernel, but not return from there: so a parent in vfork() need not be waited for.
 */
static bool is_stuck(const struct task *task, unsigned int spins)
{
	return spins > PATIENT_SPINS && kymo_thread_state(task->process->pid, task->tid) == 'D';
}

static bool is_any_running(struct kymo_hub *hub, const struct hub_process *process, const struct task *except,
			   unsigned int spins)
{
	bool is_any = false;
	int status;

	for (struct hub_process *p = hub->processes; p; p = p->next)
		for (struct task *task = is_beside(p, process) ? p->tasks : NULL; task; task = task->in_process)
			if (task != except && may_run(task) && !hub_fetch(hub, task, 0, &status) &&
			    !is_stuck(task, spins))
				is_any = true;
	return is_any;
}

void hub_space_hold(struct kymo_hub *hub, const struct hub_process *process, const struct task *except)
{
	uint64_t deadline = kymo_now_ns() + HOLD_NS;

	for (struct hub_process *p = hub->processes; p; p = p->next)
		for (struct task *task = is_beside(p, process) ? p->tasks : NULL; task; task = task->in_process)
			if (task != except && may_run(task))
				hub_interrupt(hub, task);
	for (unsigned int spins = 0; is_any_running(hub, process, except, spins) && kymo_now_ns() < deadline; spins++)
		kymo_back_off(spins);
}

bool hub_space_keeps(const struct task *task)
{
	return task->process->space && task->process->space->n_in;
}

bool hub_space_can_run(const struct kymo_hub *hub, const struct hub_space *space)
{
	for (const struct hub_process *p = hub->processes; p; p = p->next)
		for (const struct task *task = p->space == space ? p->tasks : NULL; task; task = task->in_process)
			if (may_run(task))
				return true;
	return false;
}

void hub_space_rest(struct kymo_hub *hub, const struct task *task)
{
	struct hub_space *space = task->process->space;
	kymo_cleanup(hub_mappings_deinit) struct hub_mappings mappings = { .pid = task->process->pid };

	if (!space || space->is_disarmed || !space->n_in || hub_space_can_run(hub, space))
		return;
	space->is_disarmed = true;
	for (size_t i = 0; i < space->breaks.n; i++) {
		struct hub_break *b = &space->breaks.items[i];

		if (!b->owners)
			continue;
		hub_space_lift(space, b, &mappings);
		if (!b->is_void)
			continue;
		hub_strike(hub, b->entry);
		b->entry = -1;
	}
}

static void rearm(struct hub_space *space)
{
	if (!space->is_disarmed)
		return;
	space->is_disarmed = false;
	for (size_t i = 0; i < space->breaks.n; i++)
		if (space->breaks.items[i].owners)
			hub_space_lower(space, &space->breaks.items[i]);
}

void hub_space_wake(const struct task *task)
{
	if (task->process->space)
		rearm(task->process->space);
}
