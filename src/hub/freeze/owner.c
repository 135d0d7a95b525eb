/* The owner of a process, at the hub of this thread: which process it follows, its requests, and how it lets the
 * process go. proc/frozen.c is the other side. */
#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "hub/engine.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/hub.h"
#include "hub/local.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "kymo/engine.h"

#define DRAIN_NS 10000000ull

struct hub_owner *hub_owner_create(void)
{
	struct hub_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return NULL;
	owner->requests = -1;
	if (!hub_create_here(&owner->hub))
		return owner;
	free(owner);
	return NULL;
}

void hub_owner_destroy(struct hub_owner *owner)
{
	if (!owner)
		return;
	hub_freeze_drop(owner);
	kymo_hub_destroy(owner->hub);
	free(owner);
}

static int keep_frozen(struct kymo_hub *hub, void *argument)
{
	struct hub_owner *owner = argument;
	struct hub_process *process = hub_find_process(hub, owner->followed);

	if (!process)
		return -ESRCH;
	process->follower = owner;
	if (process->owner != owner)
		process->owner = NULL;
	process->is_owed = false;
	return 0;
}

int hub_freeze_follow(struct hub_owner *owner, pid_t pid)
{
	owner->followed = pid;
	return hub_call(owner->hub, keep_frozen, owner);
}

static int request(struct kymo_hub *hub, void *argument)
{
	struct hub_owner *owner = argument;
	struct hub_process *process = hub_find_process(hub, owner->followed);

	if (!process || process->follower != owner)
		return -ESRCH;
	process->is_owed = process->owner && process->owner != owner;
	if (!process->is_owed)
		hub_freeze_take(process);
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->must_freeze = true;
		hub_kick(hub, task);
	}
	return process->is_owed;
}

int hub_freeze_request(struct hub_owner *owner)
{
	return hub_call(owner->hub, request, owner);
}

static int abandon(struct kymo_hub *hub, void *argument)
{
	const struct hub_owner *owner = argument;
	struct hub_process *process = hub_find_process(hub, owner->followed);

	if (!process || process->follower != owner)
		return 0;
	process->follower = NULL;
	process->owner = NULL;
	process->is_owed = false;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->must_freeze = false;
		hub_kick(hub, task);
	}
	return 0;
}

void hub_freeze_abandon(struct hub_owner *owner)
{
	hub_call(owner->hub, abandon, owner);
}

/* What the tree has of a process; others may have engines there. */
static int leave_frozen(struct kymo_hub *hub, void *argument)
{
	struct hub_owner *owner = argument;
	struct hub_process *process = hub_find_process(hub, owner->followed);

	if (!process || process->follower != owner)
		return 0;
	hub_freeze_cancel(hub, owner);
	process->follower = NULL;
	for (struct task *task = process->tasks; task; task = task->in_process)
		for (size_t i = task->engines.n; i-- > 0;)
			if (!task->engines.items[i]->guest)
				hub_detach_engine(hub, task->engines.items[i]);
	return 0;
}

void hub_freeze_leave(struct hub_owner *owner)
{
	hub_call(owner->hub, leave_frozen, owner);
}

static int count_left(struct kymo_hub *hub, void *argument)
{
	const struct hub_owner *owner = argument;
	const struct hub_process *process = hub_find_process(hub, owner->followed);
	int n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += task->leavers.n > 0;
	return n;
}

int hub_freeze_count_left(struct hub_owner *owner)
{
	return hub_call(owner->hub, count_left, owner);
}

static int count_living(struct kymo_hub *hub, void *argument)
{
	const struct hub_owner *owner = argument;
	const struct hub_process *process = hub_find_process(hub, owner->followed);
	int n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += !task->end.was_told;
	return n;
}

int hub_freeze_count_living(struct hub_owner *owner)
{
	return hub_call(owner->hub, count_living, owner);
}

/* It has no owner any more. A first thread that has ended before the others tells nothing until they have. */
static bool is_leaving(const struct task *task)
{
	bool is_told_last = task->state == TASK_ENDING && task->tid == task->process->pid;

	return !task->engines.n && !task->process->owner && !task->process->is_held && !is_told_last;
}

static int hurry_leaving(struct kymo_hub *hub, void *argument)
{
	int n = 0;

	for (size_t i = 0; i < TASK_BUCKETS && hub->tasks.n; i++)
		for (struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket) {
			if (!is_leaving(task))
				continue;
			hub_kick(hub, task);
			n++;
		}
	return n;
}

int hub_freeze_hurry(struct hub_owner *owner)
{
	return hub_call(owner->hub, hurry_leaving, NULL);
}

void hub_freeze_serve(struct hub_owner *owner)
{
	struct kymo_hub *hub = owner->hub;
	uint64_t deadline = kymo_now_ns() + DRAIN_NS;

	while ((hub->tasks.n || hub->statuses.early.n) && hub_pump(hub) && kymo_now_ns() < deadline)
		;
}
