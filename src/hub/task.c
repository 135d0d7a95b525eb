/* Threads and processes of a hub, and seizing them. run.c lets them run, release.c lets go of all. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/freeze/borrow.h"
#include "hub/freeze/hold.h"
#include "hub/hub.h"
#include "hub/replaced.h"
#include "hub/run.h"
#include "hub/seize.h"
#include "hub/state.h"
#include "hub/task.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/space.h"
#include "hub/trap/watch.h"
#include "hub/wait.h"
#include "procfs/info.h"
#include "procfs/memory.h"

#define SEIZE_TRIES 20
#define EXEC_NS 2000000000ull /* for an exec to get on */
#define IDLE_LISTS 100

/* ---- processes
 * --------------------------------------------------------------------------------------------------------- */

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

/* ---- the table of threads
 * ------------------------------------------------------------------------------------------------ */

static struct task **bucket_of(struct kymo_hub *hub, pid_t tid)
{
	return &hub->buckets[(unsigned int)tid % TASK_BUCKETS];
}

struct task *hub_find(const struct kymo_hub *hub, pid_t tid)
{
	struct task *task = hub->buckets[(unsigned int)tid % TASK_BUCKETS];

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

/* For each task, so that no status and no wish is lost where memory is short. */
static bool make_room(struct kymo_hub *hub, size_t n)
{
	return kymo_vec_reserve(&hub->early, n) && kymo_vec_reserve(&hub->kicked, n);
}

struct task *hub_add_task(struct kymo_hub *hub, struct hub_process *process, pid_t tid)
{
	struct task *task = make_room(hub, hub->n_tasks + 1) ? calloc(1, sizeof(*task)) : NULL;

	if (!task)
		return NULL;
	task->tid = tid;
	task->watch_entry = -1;
	task->end_status = SIGKILL;
	task->process = process;
	task->is_claimed = process->holder && (!process->is_first_held || process->is_owed);
	into_process(process, task);
	into_bucket(hub, task);
	hub->n_tasks++;
	return task;
}

void hub_rekey_task(struct kymo_hub *hub, struct task *task, pid_t tid)
{
	out_of_bucket(hub, task);
	task->tid = tid;
	task->is_expected = false; /* by its new id */
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

void hub_forget_task(struct kymo_hub *hub, struct task *task)
{
	hub_watches_forget(hub, task);
	for (size_t i = 0; i < task->engines.n; i++) {
		hub_breakpoints_drop(hub, task->engines.items[i]);
		task->engines.items[i]->task = NULL;
		task->engines.items[i]->is_detached = true;
		hub_drop(hub, task->engines.items[i]);
	}
	hub_release_leavers(hub, task);
	for (size_t i = 0; task->is_kicked && i < hub->kicked.n; i++)
		if (hub->kicked.items[i] == task)
			hub->kicked.items[i--] = hub->kicked.items[--hub->kicked.n];
	if (task->is_fetched)
		hub_forget_stop(hub, task);
	hub_end_hold(hub, task);
	hub->n_tasks--;
	out_of_bucket(hub, task);
	out_of_process(task);
	if (!task->process->tasks)
		hub_space_leave(hub, task->process);
	hub_put_process(hub, task->process);
	kymo_vec_deinit(&task->engines);
	kymo_vec_deinit(&task->leavers);
	kymo_vec_deinit(&task->sent);
	hub_forget_borrow(task);
	free(task);
	pthread_cond_broadcast(&hub->changed);
}

/* ---- seizing
 * --------------------------------------------------------------------------------------------------------------- */

/*
 * What an EPERM means. 0: it is ours already, made by a thread that is followed, and its first stop has not been
 * fetched. -EAGAIN: nobody was found, so whoever it was may be gone.
 */
static int look_again(pid_t tid)
{
	struct kymo_process_info info;

	if (!kymo_process_peek(tid, &info) || info.state == 'Z' || info.state == 'X')
		return -ESRCH;
	if (info.tracer == gettid())
		return 0;
	return info.tracer ? -EBUSY : -EAGAIN;
}

/* 0: seized; 1: was so already; -EINTR: nothing was done. */
static int try_seize(pid_t tid, unsigned long options)
{
	int err = 0;

	for (int i = 0; i < SEIZE_TRIES; i++) {
		err = hub_seize_thread(tid, options);
		if (err != -EPERM)
			return err;
		err = look_again(tid);
		if (err == 0)
			return 1;
		if (err != -EAGAIN)
			return err;
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
	}
	return -EPERM;
}

static bool is_being_taken(const struct hub_process *process)
{
	return process && process->holder && process->holder->takes;
}

/* Broken off once, that may have been by chance; twice, it waits for an exec. */
static int seize(struct kymo_hub *hub, pid_t tid, pid_t pid)
{
	unsigned long options = is_being_taken(hub_find_process(hub, pid)) ? HUB_TAKER_OPTIONS : HUB_OPTIONS;
	int err = try_seize(tid, options);
	uint64_t deadline = err == -EINTR ? kymo_now_ns() + EXEC_NS : 0;

	if (err == -EINTR)
		err = try_seize(tid, options);
	while (err == -EINTR) {
		hub_let_end(hub, pid);
		err = kymo_now_ns() < deadline ? try_seize(tid, options) : -ETIMEDOUT;
	}
	if (!err && tid != pid && syscall(SYS_tgkill, pid, tid, 0) && errno == ESRCH) {
		hub_let_go_of_renamed(hub, pid);
		err = -ESRCH;
	}
	return err == -ESRCH && hub_was_replaced(hub, pid) ? -EAGAIN : err;
}

/* Mostly that whose threads were seized last, which is cheaper to ask for than /proc is to read. */
static pid_t process_of(const struct kymo_hub *hub, pid_t tid)
{
	const struct hub_process *last = hub->processes;
	struct kymo_process_info info;

	if (last && !last->has_ended && !syscall(SYS_tgkill, last->pid, tid, 0))
		return last->pid;
	return kymo_process_peek(tid, &info) ? info.tgid : 0;
}

/* Of one that the hub has. */
static int check_old(const struct kymo_hub *hub, const struct task *task)
{
	if (task->was_death_told)
		return -ESRCH;
	if (!hub_has_end(hub, task))
		return 0;
	return task->tid == task->process->pid ? -EAGAIN : -ESRCH;
}

int hub_seize(struct kymo_hub *hub, pid_t tid, pid_t pid, struct task **ret)
{
	struct task *task = hub_find(hub, tid);
	struct hub_process *process;
	int seized;

	if (task) {
		*ret = task;
		return check_old(hub, task);
	}
	pid = pid || tid <= 0 ? pid : process_of(hub, tid);
	if (!pid)
		return -ESRCH;
	if (tid == hub->waker)
		return -EPERM;
	hub_seizing_begins(&hub->seizer);
	seized = seize(hub, tid, pid);
	hub_seizing_ends(&hub->seizer);
	if (seized < 0)
		return seized;
	process = hub_get_process(hub, pid);
	task = process ? hub_add_task(hub, process, tid) : NULL;
	if (!task) {
		if (process)
			hub_put_process(hub, process);
		return -ENOMEM; /* the kernel lets it go with the hub */
	}
	task->is_newborn = task->has_maker = seized == 1;
	task->is_taken = is_being_taken(process);
	*ret = task;
	return 0;
}

static bool is_ours(const struct kymo_hub *hub, pid_t tid)
{
	const struct task *task = hub_find(hub, tid);

	return task && !hub_has_end(hub, task);
}

int hub_seize_threads(struct kymo_hub *hub, pid_t pid)
{
	struct dirent *entry;
	int n = 0, err = 0;
	char name[64];
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	if (!tasks)
		return -ESRCH;
	hub_seizing_begins(&hub->seizer);
	while (!err && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct task *task;

		if (tid <= 0 || is_ours(hub, tid))
			continue;
		err = hub_seize(hub, tid, pid, &task);
		n += !err;
		if (err == -ESRCH)
			err = 0;
	}
	hub_seizing_ends(&hub->seizer);
	closedir(tasks);
	return err ? err : n;
}

bool hub_lacks_threads(const struct kymo_hub *hub, pid_t pid)
{
	const struct hub_process *process = hub_find_process(hub, pid);
	struct stat tasks;
	char name[64];
	nlink_t n = 2; /* of a directory, and one for each thread */

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	n += process && !hub_find(hub, pid);
	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n++;
	return !stat(name, &tasks) && tasks.st_nlink > n;
}

/* A list of threads ends early where one of them has just ended. */
int hub_seize_all(struct kymo_hub *hub, pid_t pid)
{
	int n = 0;

	for (int idle = 0; n >= 0 && idle < IDLE_LISTS && (!idle || hub_lacks_threads(hub, pid));
	     idle = n > 0 ? 0 : idle + 1)
		n = hub_seize_threads(hub, pid);
	return n < 0 ? n : 0;
}

static bool is_filtered(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info) && info.seccomp;
}

void hub_abandon(const struct kymo_hub *hub, pid_t tid)
{
	if (hub->has_filters && is_filtered(tid))
		kill(tid, SIGKILL);
	ptrace(PTRACE_DETACH, tid, 0, 0);
}
