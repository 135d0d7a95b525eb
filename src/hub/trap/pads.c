#include "hub/trap/pads.h"

#include <errno.h>
#include <sys/ptrace.h>

#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/disarm.h"
#include "hub/trap/pad.h"
#include "hub/trap/put.h"

struct pads_call {
	struct kymo_engine *engine;
	const struct hub_pad *pad;
	uint64_t site;
	bool is_used;
};

static struct hub_space *space_of(const struct kymo_engine *engine)
{
	return engine->is_detached || !engine->task ? NULL : engine->task->process->space;
}

/* One that was at the same site before is replaced. */
static struct hub_pad *keep(struct hub_space *space, const struct hub_pad *pad)
{
	struct hub_pad *item = hub_pad_at(space, pad->site);

	if (!item && kymo_vec_push(&space->pads, *pad))
		return &space->pads.items[space->pads.n - 1];
	if (item)
		*item = *pad;
	return item;
}

/* A client of the hub has a breakpoint there, which the pad's condition is not for. */
static bool has_guests(const struct kymo_engine *engine, uint64_t address)
{
	for (const struct task *task = engine->task->process->tasks; task; task = task->in_process)
		for (size_t i = 0; i < task->engines.n; i++) {
			const struct kymo_engine *other = task->engines.items[i];

			for (size_t k = 0; other->guest && k < other->breakpoints.n; k++)
				if (other->breakpoints.items[k] == address)
					return true;
		}
	return false;
}

static int give(struct kymo_hub *hub, void *argument)
{
	const struct pads_call *call = argument;
	struct hub_space *space = space_of(call->engine);
	struct hub_break *b = space ? hub_space_find(space, call->pad->site) : NULL;
	struct hub_pad *pad;
	int err = 0;

	if (!space)
		return -ESRCH;
	if (!hub_pad_is_written(space, call->pad))
		return -EBUSY;
	if (b && b->owners)
		err = hub_put_by(hub, space, b, false); /* of the pad that was here before */
	if (!err && !b && !hub_put_break(space, call->pad->site))
		err = -ENOMEM; /* of hits that come late, a breakpoint is found */
	pad = err ? NULL : keep(space, call->pad);
	if (!err && !pad)
		err = -ENOMEM;
	b = err ? NULL : hub_space_find(space, pad->site);
	if (b)
		pad->is_used &= !has_guests(call->engine, pad->site);
	return b ? hub_put_by(hub, space, b, pad->is_used) : err;
}

int hub_pads_give(struct kymo_engine *engine, const struct hub_pad *pad)
{
	if (!engine->may_break)
		return -EPERM;
	return hub_call(engine->hub, give, &(struct pads_call){ .engine = engine, .pad = pad });
}

static int use(struct kymo_hub *hub, void *argument)
{
	const struct pads_call *call = argument;
	struct hub_space *space = space_of(call->engine);
	struct hub_pad *pad = space ? hub_pad_at(space, call->site) : NULL;
	struct hub_break *b = pad ? hub_space_find(space, call->site) : NULL;

	if (!pad || pad->is_used == call->is_used)
		return 0;
	if (call->is_used && has_guests(call->engine, call->site))
		return 0; /* it becomes the pad's when they have left, and it is put in again */
	pad->is_used = call->is_used;
	return b ? hub_put_by(hub, space, b, call->is_used) : 0;
}

void hub_pads_use(struct kymo_engine *engine, uint64_t site, bool is_used)
{
	hub_call(engine->hub, use, &(struct pads_call){ .engine = engine, .site = site, .is_used = is_used });
}

int hub_pads_yield(struct kymo_hub *hub, struct hub_space *space, uint64_t address)
{
	struct hub_pad *pad = space ? hub_pad_at(space, address) : NULL;
	struct hub_break *b = pad ? hub_space_find(space, address) : NULL;

	if (!pad)
		return 0;
	pad->is_used = false;
	return b ? hub_put_by(hub, space, b, false) : 0;
}

static int leave(struct kymo_hub *hub, void *argument)
{
	const struct pads_call *call = argument;
	struct hub_space *space = space_of(call->engine);

	for (size_t i = 0; space && i < space->pads.n; i++) {
		struct hub_pad *pad = &space->pads.items[i];
		struct hub_break *b = hub_space_find(space, pad->site);

		pad->is_used = false;
		if (b)
			hub_put_by(hub, space, b, false);
		pad->is_leaving = call->is_used;
	}
	return 0;
}

void hub_pads_leave(struct kymo_engine *engine, bool is_leaving)
{
	hub_call(engine->hub, leave, &(struct pads_call){ .engine = engine, .is_used = is_leaving });
}

static int forget(struct kymo_hub *hub, void *argument)
{
	const struct hub_process *process = hub_find_process(hub, *(const pid_t *)argument);

	if (process && process->space)
		process->space->pads.n = 0;
	return 0;
}

void hub_pads_forget(struct kymo_hub *hub, pid_t pid)
{
	hub_call(hub, forget, &pid);
}

/* After a step it stands before a signal that it does not get; after others, on its way out of a system call. The maker
 * of a vfork child cannot go on. */
static bool can_go_on(const struct task *task)
{
	siginfo_t info;

	switch (task->stop) {
	case STOP_SIGNAL:
		return !task->signal;
	case STOP_EXIT:
		return true;
	case STOP_EVENT:
		return !(hub_events(task) & KYMO_EVENTS_SYSCALL) && !ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) &&
		       info.si_code >> 8 == PTRACE_EVENT_CLONE;
	default:
		return false;
	}
}

/* On to where it can be frozen. */
static bool can_freeze(struct kymo_hub *hub, struct task *task)
{
	int group_stop = 0;

	if (task->state != TASK_STOPPED || task->stop == STOP_TRAP || task->stop == STOP_AWAY ||
	    task->stop == STOP_ENDING)
		return true;
	if (!can_go_on(task))
		return false;
	if (!hub_swallow(hub, task, &group_stop))
		return false;
	task->group_stop = group_stop;
	return true;
}

static int look(struct kymo_hub *hub, void *argument)
{
	const struct kymo_engine *engine = argument;
	const struct hub_process *process = engine->is_detached || !engine->task ? NULL : engine->task->process;
	bool can = process;

	for (struct task *task = can ? process->tasks : NULL; task && can; task = task->in_process)
		can = can_freeze(hub, task);
	return can;
}

bool hub_pads_can_freeze(struct kymo_engine *engine)
{
	return hub_call(engine->hub, look, engine);
}
