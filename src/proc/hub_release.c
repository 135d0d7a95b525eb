/* The end of a hub: all threads are let go. */
#include "proc/hub_trap.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/io.h"

/* It could not make picked calls without us. */
static void end_filtered(struct hub_process *process)
{
	if (!process->has_filter || process->was_killed)
		return;
	process->was_killed = true;
	kill(process->pid, SIGKILL);
}

static size_t detach_all(struct kymo_hub *hub)
{
	size_t left = 0;

	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (struct task *task = hub->buckets[i]; task; task = task->in_bucket) {
			task->has_maker = false;
			end_filtered(task->process);
			for (size_t j = task->engines.n; j-- > 0;)
				hub_detach_engine(hub, task->engines.items[j]);
			hub_kick(hub, task);
			left += task->state != TASK_ENDING;
		}
	return left;
}

static void release_processes(struct kymo_hub *hub)
{
	for (struct hub_process *process = hub->processes, *next; process; process = next) {
		next = process->next;
		if (process->is_held)
			kill(process->pid, SIGKILL);
		process->is_launched = process->is_held = false;
		hub_put_process(hub, process);
	}
}

void hub_release_all(struct kymo_hub *hub, int timeout_ms)
{
	uint64_t deadline = kymo_now_ns() + (uint64_t)timeout_ms * 1000000;

	hub_space_clear_all(hub);
	release_processes(hub);
	for (unsigned int spins = 0; detach_all(hub) && kymo_now_ns() < deadline; spins++) {
		int status;
		pid_t tid;

		while (hub->kicked.n) {
			struct task *task = hub->kicked.items[--hub->kicked.n];

			task->is_kicked = false;
			hub_attend(hub, task);
		}
		if (hub->early.n) {	/* what it was stopped by before, which nobody else will tell */
			struct hub_status early = hub->early.items[--hub->early.n];

			tid = early.tid;
			status = early.status;
		} else {
			tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
		}
		if (tid > 0 && tid == hub->keeper) {
			hub_keeper_ended(hub);
		} else if (tid > 0 && tid != hub->waker) {
			hub_dispatch(hub, tid, status);
			spins = 0;
		}
		hub_look_at_clock(hub);
		kymo_wait_a_little(spins);
	}
	/* Whoever sleeps so that it can't be stopped: the kernel lets it go when this thread ends. */
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		while (hub->buckets[i])
			hub_forget_task(hub, hub->buckets[i]);
	for (size_t i = 0; i < hub->strangers.n; i++) {
		hub_space_clean_stranger(hub, hub->strangers.items[i].tid);
		hub_abandon(hub, hub->strangers.items[i].tid);
	}
	hub->strangers.n = 0;
	hub_leave_keeper(hub);
	release_processes(hub);
	hub_bury(hub);
}
