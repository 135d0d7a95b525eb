/* The end of a hub: all threads are let go. */
#include "base/backoff.h"
#include "base/io.h"
#include "hub/engine.h"
#include "hub/forget.h"
#include "hub/release.h"
#include "hub/run.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/adopt.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/trap/keeper.h"
#include "hub/trap/space.h"
#include "hub/wait.h"

/* It could not make picked calls without us. */
static void end_filtered(const struct kymo_hub *hub, struct hub_process *process)
{
	if (!process->has_filter || process->was_killed)
		return;
	process->was_killed = true;
	hub_kill(hub, process);
}

static void detach_all(struct kymo_hub *hub)
{
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket) {
			task->birth.has_maker = false;
			for (size_t j = task->engines.n; j-- > 0;)
				hub_detach_engine(hub, task->engines.items[j]);
			hub_kick(hub, task);
		}
}

/* Except threads that will report only their end. */
static bool is_any_left(const struct kymo_hub *hub)
{
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (const struct task *task = hub->tasks.buckets[i]; task; task = task->in_bucket)
			if (task->state != TASK_ENDING)
				return true;
	return false;
}

static void release_processes(struct kymo_hub *hub)
{
	for (struct hub_process *process = hub->processes, *next; process; process = next) {
		next = process->next;
		if (process->is_held)
			hub_kill(hub, process);
		process->is_launched = process->is_held = false;
		hub_put_process(hub, process);
	}
}

static void attend_all(struct kymo_hub *hub)
{
	for (struct hub_process *process = hub->has_filters ? hub->processes : NULL; process; process = process->next)
		end_filtered(hub, process); /* some may be new */
	while (hub->tasks.kicked.n) {
		struct task *task = hub->tasks.kicked.items[--hub->tasks.kicked.n];

		task->is_kicked = false;
		hub_attend(hub, task);
	}
	hub_look_at_clock(hub, true);
}

void hub_release_all(struct kymo_hub *hub, int timeout_ms)
{
	uint64_t deadline = kymo_now_ns() + (uint64_t)timeout_ms * 1000000;

	hub_space_clear_all(hub);
	release_processes(hub);
	detach_all(hub);
	/* If the thread goes on, the ends of untraced children are for other waiters. */
	for (unsigned int spins = 0; (hub->tasks.n || !hub->is_here) && kymo_now_ns() < deadline; spins++) {
		attend_all(hub);
		if (hub_deal_with_next(hub))
			spins = 0;
		else if (!is_any_left(hub))
			break;
		else
			kymo_back_off(spins);
	}
	/* A thread whose sleep cannot be interrupted: the kernel lets it go when this thread ends. */
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		while (hub->tasks.buckets[i])
			hub_forget_task(hub, hub->tasks.buckets[i]);
	for (size_t i = 0; i < hub->statuses.unclaimed.n; i++) {
		hub_space_clean_unclaimed(hub, hub->statuses.unclaimed.items[i].tid);
		hub_abandon(hub, hub->statuses.unclaimed.items[i].tid);
	}
	hub->statuses.unclaimed.n = 0;
	hub_leave_keeper(hub);
	release_processes(hub);
	hub_bury(hub);
}
