/* Who holds a process by the hub of this thread, at that hub: what it follows and claims, and how it lets go. keep.c is
 * the other side. */
#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "hub/engine.h"
#include "hub/freeze/hold.h"
#include "hub/freeze/holder.h"
#include "hub/hub.h"
#include "hub/local.h"
#include "hub/state.h"
#include "hub/thread/claim.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "kymo/engine.h"

#define DRAIN_NS 10000000ull

struct hub_holder *hub_holder_create(void)
{
	struct hub_holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->requests = -1;
	if (!hub_create_here(&holder->hub))
		return holder;
	free(holder);
	return NULL;
}

void hub_holder_destroy(struct hub_holder *holder)
{
	if (!holder)
		return;
	hub_hold_drop(holder);
	kymo_hub_destroy(holder->hub);
	free(holder);
}

static int keep_frozen(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process)
		return -ESRCH;
	process->keeper = holder;
	if (process->holder != holder)
		process->holder = NULL;
	process->is_owed = false;
	return 0;
}

int hub_hold_keep(struct hub_holder *holder, pid_t pid)
{
	holder->kept = pid;
	return hub_call(holder->hub, keep_frozen, holder);
}

static int claim(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->keeper != holder)
		return -ESRCH;
	process->is_owed = process->holder && process->holder != holder;
	if (!process->is_owed)
		hub_hold_take(process);
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->is_claimed = true;
		hub_kick(hub, task);
	}
	return process->is_owed;
}

int hub_hold_claim(struct hub_holder *holder)
{
	return hub_call(holder->hub, claim, holder);
}

static int abandon(struct kymo_hub *hub, void *argument)
{
	const struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->keeper != holder)
		return 0;
	process->keeper = NULL;
	process->holder = NULL;
	process->is_owed = false;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->is_claimed = false;
		hub_kick(hub, task);
	}
	return 0;
}

void hub_hold_abandon(struct hub_holder *holder)
{
	hub_call(holder->hub, abandon, holder);
}

/* What the tree has of a process; others may have engines there. */
static int leave_frozen(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->keeper != holder)
		return 0;
	hub_hold_cancel(hub, holder);
	process->keeper = NULL;
	for (struct task *task = process->tasks; task; task = task->in_process)
		for (size_t i = task->engines.n; i-- > 0;)
			if (!task->engines.items[i]->guest)
				hub_detach_engine(hub, task->engines.items[i]);
	return 0;
}

void hub_hold_leave(struct hub_holder *holder)
{
	hub_call(holder->hub, leave_frozen, holder);
}

static int count_left(struct kymo_hub *hub, void *argument)
{
	const struct hub_holder *holder = argument;
	const struct hub_process *process = hub_find_process(hub, holder->kept);
	int n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += task->leavers.n > 0;
	return n;
}

int hub_hold_count_left(struct hub_holder *holder)
{
	return hub_call(holder->hub, count_left, holder);
}

static int count_living(struct kymo_hub *hub, void *argument)
{
	const struct hub_holder *holder = argument;
	const struct hub_process *process = hub_find_process(hub, holder->kept);
	int n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += !task->end.was_told;
	return n;
}

int hub_hold_count_living(struct hub_holder *holder)
{
	return hub_call(holder->hub, count_living, holder);
}

/* Nobody wants it any more. A first thread that has ended before the others tells nothing until they have. */
static bool is_leaving(const struct task *task)
{
	bool is_told_last = task->state == TASK_ENDING && task->tid == task->process->pid;

	return !task->engines.n && !task->process->holder && !task->process->is_held && !is_told_last;
}

static int hurry(struct kymo_hub *hub, void *argument)
{
	int n = 0;

	for (size_t i = 0; i < TASK_BUCKETS && hub->n_tasks; i++)
		for (struct task *task = hub->buckets[i]; task; task = task->in_bucket) {
			if (!is_leaving(task))
				continue;
			hub_kick(hub, task);
			n++;
		}
	return n;
}

int hub_hold_hurry(struct hub_holder *holder)
{
	return hub_call(holder->hub, hurry, NULL);
}

void hub_hold_serve(struct hub_holder *holder)
{
	struct kymo_hub *hub = holder->hub;
	uint64_t deadline = kymo_now_ns() + DRAIN_NS;

	while ((hub->n_tasks || hub->early.n) && hub_pump(hub) && kymo_now_ns() < deadline)
		;
}
