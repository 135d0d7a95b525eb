/*
 * Stopping a process by the hub of this thread, letting it run, letting it go: one of a tree, or one that nobody traces otherwise. It stands still as one does for a recorder that is connected to a
 * hub (hub_hold.c, joined.c), but the hub is that of this process, so messages are calls. While such a recorder has one of a tree, what is claimed here waits.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "proc/hub_hold.h"
#include "proc/joined.h"
#include "proc/tree.h"

#define RELEASE_TIMEOUT_NS 10000000000ull
#define END_TIMEOUT_NS 2000000000ull
#define TURN_TIMEOUT_NS (2 * KYMO_ANSWER_MS * 1000000ull)	/* whoever says nothing for half of that has lost its hold */
#define LEAVE_TIMEOUT_NS 100000000ull	/* without anybody going */
#define LEAVE_MOST_NS 5000000000ull
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

/* ---- at the hub ---------------------------------------------------------------------------------------------------- */

static int keep(struct kymo_hub *hub, void *argument)
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
	return hub_call(holder->hub, keep, holder);
}

void hub_hold_take(struct hub_process *process)
{
	process->holder = process->keeper;
	process->keeper->held = process->pid;
	process->is_first_held = process->is_owed = false;
}

/* Those that are claimed for nobody else run on. */
void hub_hold_forgo(struct kymo_hub *hub, struct hub_holder *holder)
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
static int leave(struct kymo_hub *hub, void *argument)
{
	struct hub_holder *holder = argument;
	struct hub_process *process = hub_find_process(hub, holder->kept);

	if (!process || process->keeper != holder)
		return 0;
	hub_hold_forgo(hub, holder);
	process->keeper = NULL;
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

/* Nobody wants it any more. A first thread that has ended before the others tells nothing until they have. */
static bool is_leaving(const struct task *task)
{
	bool is_told_last = task->state == TASK_ENDING && task->tid == task->process->pid;

	return !task->engines.n && !task->process->holder && !task->process->is_held && !is_told_last;
}

/* How many there are. */
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

/* ---- one that nobody traces ------------------------------------------------------------------------------------------ */

struct kymo_error *kymo_keep_take(struct kymo_process *process, pid_t second)
{
	struct kymo_error *error;

	/* Who is seized has to be stopped to be let go of again, which its calls may see: not at each try. */
	if (process->anothers && kymo_other_tracer(process->anothers))
		return kymo_not_seized(process->pid, -EBUSY);
	if (!process->holder)
		process->holder = hub_holder_create();
	if (!process->holder)
		return &kymo_error_no_memory;
	process->holder->takes = true;
	error = kymo_joined_hold(process, second);
	if (error)
		kymo_keep_leave(process);
	return error;
}

/* All that has come. */
static void drain(struct kymo_hub *hub)
{
	uint64_t deadline = kymo_now_ns() + DRAIN_NS;

	while ((hub->n_tasks || hub->early.n) && hub_pump(hub) && kymo_now_ns() < deadline)
		;
}

void kymo_keep_leave(struct kymo_process *process)
{
	uint64_t now = kymo_now_ns(), deadline = now + LEAVE_TIMEOUT_NS, latest = now + LEAVE_MOST_NS;
	unsigned int spins = 0;
	int n, before = 0;

	if (process->joined)
		kymo_joined_resume(process);
	while (process->holder && (n = hub_call(process->holder->hub, hurry, NULL)) && now < deadline && now < latest) {
		if (n < before) {
			deadline = now + LEAVE_TIMEOUT_NS;
			spins = 0;
		}
		before = n;
		drain(process->holder->hub);	/* that there was something to do says nothing: they were hurried */
		kymo_wait_a_little(spins++);
		now = kymo_now_ns();
	}
}

void kymo_keep_serve(struct kymo_process *process)
{
	if (process->holder)
		drain(process->holder->hub);
}

/* ---- at the tree --------------------------------------------------------------------------------------------------- */

/* Also of threads that were made so that nobody is told (CLONE_UNTRACED), and were found only now. */
static void follow_threads(struct kymo_process *process)
{
	for (size_t i = 0; i < process->threads.n; i++)
		kymo_follow_thread(process->tree, process->threads.items[i].tid);
}

static void wait_until(const struct kymo_process *process, bool (*is_done)(const struct kymo_process *process), uint64_t timeout_ns)
{
	uint64_t deadline = kymo_now_ns() + timeout_ns;

	for (unsigned int spins = 0; !is_done(process) && kymo_now_ns() < deadline; spins++) {
		if (hub_pump(process->tree->hub))
			spins = 0;
		kymo_wait_a_little(spins);
	}
}

/* All of its threads are on their last way: from now on nobody is to find it alive. */
static void wait_for_end(const struct kymo_process *process)
{
	wait_until(process, kymo_process_is_past, END_TIMEOUT_NS);
}

static bool has_turn(const struct kymo_process *process)
{
	return process->is_past || hub_hold_claim(process->holder) <= 0;
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
	wait_until(process, has_turn, TURN_TIMEOUT_NS);
	if (!process->is_past)
		error = kymo_joined_hold(process, 0);
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

static bool is_left(const struct kymo_process *process)
{
	return !hub_call(process->tree->hub, count_left, process->holder);
}

void kymo_keep_release(struct kymo_process *process)
{
	struct kymo_tree *tree = process->tree;

	hub_call(tree->hub, leave, process->holder);
	process->is_held = false;
	kymo_keep_resume(process);
	if (!process->is_past)
		wait_until(process, is_left, tree->is_alone ? LEAVE_TIMEOUT_NS : RELEASE_TIMEOUT_NS);	/* who does not stop in this time stays the hub's, and is let go by the kernel when this process ends */
	kymo_tree_forget(tree, process);
	process->tree = NULL;
	process->was_born_here = false;
	if (tree->is_alone) {
		kymo_tree_destroy(tree);
		kymo_keep_leave(process);
	}
}
