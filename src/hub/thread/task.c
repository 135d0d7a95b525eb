/* Threads and processes of a hub. adopt.c makes them the hub's, hub/run.c lets them run, hub/forget.c ends them. */
#include <signal.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "procfs/memory.h"

/* ---- processes ------------------------------------------------------------------------------- */

struct hub_process *hub_find_process(const struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process = hub->processes;

	while (process && (process->pid != pid || process->has_ended))
		process = process->next;
	return process;
}

void hub_memory_put(struct hub_memory *memory)
{
	if (!memory || atomic_fetch_sub(&memory->refs, 1) > 1)
		return;
	kymo_memory_deinit(&memory->opened);
	free(memory);
}

void hub_forget_memory(struct hub_process *process)
{
	hub_memory_put(process->memory);
	process->memory = NULL;
}

struct hub_memory *hub_memory_of(struct hub_process *process)
{
	struct hub_memory *memory = process->memory ? NULL : calloc(1, sizeof(*memory));
	struct kymo_error *refusal = NULL, *error;

	if (!memory)
		return process->memory;
	error = kymo_memory_init_held(process->pid, &memory->opened, &refusal);
	if (error) {
		free(memory);
	} else {
		atomic_init(&memory->refs, 1);
		process->memory = memory;
	}
	kymo_error_destroy(error);
	kymo_error_destroy(refusal);
	return process->memory;
}

struct hub_process *hub_get_process(struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process = hub_find_process(hub, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->next = hub->processes;
	hub->processes = process;
	return process;
}

void hub_put_process(struct kymo_hub *hub, struct hub_process *process)
{
	struct hub_process **at = &hub->processes;

	if (process->tasks || process->is_launched)
		return;
	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	hub_memory_put(process->memory);
	free(process);
}

/* ---- the table of threads -------------------------------------------------------------------- */

static struct task **bucket_of(struct kymo_hub *hub, pid_t tid)
{
	return &hub->tasks.buckets[(unsigned int)tid % TASK_BUCKETS];
}

struct task *hub_find(const struct kymo_hub *hub, pid_t tid)
{
	struct task *task = hub->tasks.buckets[(unsigned int)tid % TASK_BUCKETS];

	while (task && task->tid != tid)
		task = task->in_bucket;
	return task;
}

static void into_bucket(struct kymo_hub *hub, struct task *task)
{
	struct task **bucket = bucket_of(hub, task->tid);

	task->in_bucket = *bucket;
	*bucket = task;
}

static void out_of_bucket(struct kymo_hub *hub, struct task *task)
{
	struct task **at = bucket_of(hub, task->tid);

	while (*at != task)
		at = &(*at)->in_bucket;
	*at = task->in_bucket;
}

static void into_process(struct hub_process *process, struct task *task)
{
	task->in_process = process->tasks;
	if (task->in_process)
		task->in_process->link = &task->in_process;
	task->link = &process->tasks;
	process->tasks = task;
}

static void out_of_process(struct task *task)
{
	*task->link = task->in_process;
	if (task->in_process)
		task->in_process->link = task->link;
}

/* For each task, so that no status and no request is lost where memory is short. */
static bool reserve_task_lists(struct kymo_hub *hub, size_t n)
{
	return kymo_vec_reserve(&hub->statuses.early, n) && kymo_vec_reserve(&hub->tasks.kicked, n);
}

struct task *hub_add_task(struct kymo_hub *hub, struct hub_process *process, pid_t tid)
{
	struct task *task = reserve_task_lists(hub, hub->tasks.n + 1) ? calloc(1, sizeof(*task)) : NULL;

	if (!task)
		return NULL;
	task->tid = tid;
	task->traps.watch_entry = -1;
	task->end.status = SIGKILL;
	task->process = process;
	task->must_freeze = process->owner && (!process->is_first_frozen || process->is_owed);
	into_process(process, task);
	into_bucket(hub, task);
	hub->tasks.n++;
	return task;
}

void hub_take_out_task(struct kymo_hub *hub, struct task *task)
{
	hub->tasks.n--;
	out_of_bucket(hub, task);
	out_of_process(task);
}

void hub_rekey_task(struct kymo_hub *hub, struct task *task, pid_t tid)
{
	out_of_bucket(hub, task);
	task->tid = tid;
	task->resumed.is_expected = false; /* by its new id */
	into_bucket(hub, task);
}

void hub_release_leavers(struct kymo_hub *hub, struct task *task)
{
	for (size_t i = 0; i < task->leavers.n; i++) {
		task->leavers.items[i]->task = NULL;
		hub_drop(hub, task->leavers.items[i]);
	}
	task->leavers.n = 0;
}

/* ---- one thread ------------------------------------------------------------------------------ */

unsigned int hub_events(const struct task *task)
{
	unsigned int events = 0;

	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached)
			events |= task->engines.items[i]->events;
	return events;
}

void hub_break_stops(struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (task->engines.items[i]->wants == KYMO_ACTION_STOP)
			task->engines.items[i]->wants = KYMO_ACTION_RESUME;
}

void hub_end_hold(struct kymo_hub *hub, struct task *task)
{
	hub->tasks.n_ending -= task->end.hold_deadline_ns != 0;
	task->end.hold_deadline_ns = 0;
}
