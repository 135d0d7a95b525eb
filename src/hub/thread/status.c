/* Statuses that were fetched before their turn, and those that are on their way. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/backoff.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/state.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"

void hub_keep_status(struct kymo_hub *hub, pid_t tid, int status)
{
	struct hub_status early = { .tid = tid, .status = status };
	struct task *task = hub_find(hub, tid);

	kymo_vec_push(&hub->statuses.early, early); /* hub_add_task() has made room */
	if (task)
		task->resumed.is_fetched = true;
}

bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret)
{
	uint64_t deadline = timeout_ns ? kymo_now_ns() + timeout_ns : 0;
	pid_t got = 0;

	for (unsigned int spins = 0; !got; spins++) {
		got = waitpid(task->tid, status_ret, __WALL | WNOHANG);
		if (got || !timeout_ns || kymo_now_ns() >= deadline)
			break;
		kymo_back_off(spins);
	}
	if (got != task->tid)
		return false;
	hub_keep_status(hub, task->tid, *status_ret);
	return true;
}

static struct hub_status take_status(struct kymo_hub *hub, size_t i)
{
	struct hub_status early = hub->statuses.early.items[i];

	hub->statuses.early.n--;
	memmove(&hub->statuses.early.items[i], &hub->statuses.early.items[i + 1],
		(hub->statuses.early.n - i) * sizeof(early));
	return early;
}

void hub_forget_status(struct kymo_hub *hub, struct task *task)
{
	for (size_t i = 0; i < hub->statuses.early.n; i++)
		if (hub->statuses.early.items[i].tid == task->tid) {
			take_status(hub, i);
			break;
		}
	task->resumed.is_fetched = false;
}

void hub_forget_stop(struct kymo_hub *hub, const struct task *task)
{
	for (size_t i = hub->statuses.early.n; i-- > 0;)
		if (hub->statuses.early.items[i].tid == task->tid && WIFSTOPPED(hub->statuses.early.items[i].status))
			take_status(hub, i);
}

/* A thread that was killed since is elsewhere, or has ended. */
pid_t hub_take_early(struct kymo_hub *hub, int *status_ret)
{
	struct hub_status early;
	struct task *task;
	int newer;

	if (!hub->statuses.early.n)
		return 0;
	early = take_status(hub, 0);
	task = hub_find(hub, early.tid);
	if (task)
		task->resumed.is_fetched = false;
	if (WIFSTOPPED(early.status) && waitpid(early.tid, &newer, __WALL | __WNOTHREAD | WNOHANG) == early.tid)
		early.status = newer;
	*status_ret = early.status;
	return early.tid;
}

bool hub_has_end(const struct kymo_hub *hub, const struct task *task)
{
	for (size_t i = 0; task->resumed.is_fetched && i < hub->statuses.early.n; i++)
		if (hub->statuses.early.items[i].tid == task->tid && !WIFSTOPPED(hub->statuses.early.items[i].status))
			return true;
	return false;
}

int hub_kill(const struct kymo_hub *hub, const struct hub_process *process)
{
	if (process->has_ended)
		return -ESRCH;
	for (size_t i = 0; i < hub->statuses.early.n; i++)
		if (hub->statuses.early.items[i].tid == process->pid &&
		    !WIFSTOPPED(hub->statuses.early.items[i].status))
			return -ESRCH;
	return kill(process->pid, SIGKILL) ? -errno : 0;
}

/* No thread hides another, so no stop is waited for: one before a signal is none that a death could lose. */
bool hub_looks_by_id(const struct kymo_hub *hub)
{
	return hub->is_here && !hub->waits_for_any;
}

void hub_wait_for_spared(struct kymo_hub *hub)
{
	struct hub_status spared = hub->statuses.spared;
	const struct task *task = hub_find(hub, spared.tid);
	int status;

	hub->statuses.spared.tid = 0;
	if (!spared.tid || (task && task->state != TASK_STOPPED && !task->birth.has_maker))
		return; /* it goes on */
	if (waitpid(spared.tid, &status, __WALL | __WNOTHREAD | WNOHANG) == spared.tid && status != spared.status)
		hub_keep_status(hub, spared.tid,
				status); /* it was killed meanwhile, or was let go, is a child of ours and has ended */
}

void hub_expect(struct kymo_hub *hub, struct task *task)
{
	if (!hub_looks_by_id(hub) && hub->tasks.n >= HUB_MANY_TASKS && !task->resumed.is_expected)
		task->resumed.is_expected = kymo_vec_push(&hub->statuses.expected, task->tid);
}
