/*
 * Stopping a process of a tree, letting it run, letting it go. It stands still as one does for a recorder that is connected to a hub (hub_hold.c, joined.c), but the hub is that of this process, so
 * messages are calls. Nobody else is given it to stand still.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "proc/hub_hold.h"
#include "proc/joined.h"
#include "proc/tree.h"

#define RELEASE_TIMEOUT_NS 10000000000ull
#define END_TIMEOUT_NS 2000000000ull

/* ---- at the hub ---------------------------------------------------------------------------------------------------- */

static int keep(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process)
		return -ESRCH;
	if (process->holder && process->holder != process->only_holder)
		return -EBUSY;
	process->only_holder = holder;
	return 0;
}

int hub_hold_keep(struct hub_holder *holder, pid_t pid)
{
	holder->kept = pid;
	return hub_call(holder->hub, keep, holder);
}

static int claim(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->only_holder != holder)
		return -ESRCH;
	process->holder = holder;
	process->is_first_held = false;
	holder->held = holder->kept;
	for (struct task *task = process->tasks; task; task = task->in_process) {
		task->is_claimed = true;
		hub_kick(hub, task);
	}
	return 0;
}

int hub_hold_claim(struct hub_holder *holder)
{
	return hub_call(holder->hub, claim, holder);
}

/* What the tree has of a process; others may have engines there. */
static int leave(struct kymo_hub *hub, void *argument)
{
	const struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->only_holder != holder)
		return 0;
	process->only_holder = NULL;
	for (struct task *task = process->tasks; task; task = task->in_process)
		for (size_t i = task->engines.n; i-- > 0;)
			if (!task->engines.items[i]->guest)
				hub_detach_engine(hub, task->engines.items[i]);
	return 0;
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

static int count_living(struct kymo_hub *hub, void *argument)
{
	const struct hub_holder *holder = argument;
	const struct hub_process *process = hub_find_process(hub, holder->kept);
	int n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += !task->was_death_told;
	return n;
}

/* ---- at the tree --------------------------------------------------------------------------------------------------- */

/* Also of threads that were made so that nobody is told (CLONE_UNTRACED), and were found only now. */
static void follow_threads(struct kymo_process *process)
{
	for (size_t i = 0; i < process->threads.n; i++)
		kymo_follow_thread(process->tree, process->threads.items[i].tid);
}

/* All of its threads are on their last way: from now on nobody is to find it alive. */
static void wait_for_end(const struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + END_TIMEOUT_NS;

	for (unsigned int spins = 0; !process->is_past && kymo_now_ns() < deadline; spins++) {
		if (hub_pump(process->tree->hub))
			spins = 0;
		kymo_wait_a_little(spins);
	}
}

void kymo_keep_look(struct kymo_process *process)
{
	if (!process->is_past && !hub_call(process->tree->hub, count_living, process->holder))
		wait_for_end(process);
}

struct kymo_error *kymo_keep_stop(struct kymo_process *process)
{
	struct kymo_error *error = NULL;

	if (process->remote.active)
		return NULL;
	if (!process->is_past)
		error = kymo_joined_hold(process);
	if (error && error->code == KYMO_ERROR_GONE)
		wait_for_end(process);
	if (process->is_past) {
		kymo_error_destroy(error);
		error = kymo_error_create(KYMO_ERROR_GONE, "process %d has ended, or has become another program", process->pid);
	}
	if (error)
		kymo_keep_resume(process);
	else
		follow_threads(process);
	return error;
}

void kymo_keep_run(struct kymo_process *process)
{
	if (process->joined)
		kymo_joined_resume(process);
	else
		hub_hold_drop(process->holder);	/* it may be claimed */
}

void kymo_keep_resume(struct kymo_process *process)
{
	if (process->is_held)
		return;
	kymo_startup_off(process);
	kymo_keep_run(process);
}

/* Whoever does not stop in this time stays the hub's, and is let go by the kernel when this process ends. */
static void wait_until_left(const struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + RELEASE_TIMEOUT_NS;
	unsigned int spins = 0;

	while (hub_call(process->tree->hub, count_left, process->holder) && kymo_now_ns() < deadline) {
		spins = hub_pump(process->tree->hub) ? 0 : spins + 1;
		kymo_wait_a_little(spins);
	}
}

void kymo_keep_release(struct kymo_process *process)
{
	hub_call(process->tree->hub, leave, process->holder);
	process->is_held = false;
	kymo_keep_resume(process);
	if (!process->is_past)
		wait_until_left(process);
	kymo_tree_forget(process->tree, process);
	process->tree = NULL;
	free(process->holder);
	process->holder = NULL;
}
