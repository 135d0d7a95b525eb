/* Making threads of a process the hub's: seizing them, once or until there is no other. */
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

#include "base/io.h"
#include "hub/state.h"
#include "hub/thread/adopt.h"
#include "hub/thread/frozen.h"
#include "hub/thread/replaced.h"
#include "hub/thread/seize.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "procfs/info.h"

#define SEIZE_TRIES 20
#define EXEC_NS 2000000000ull /* for an exec to go on */
#define IDLE_LISTS 100

/*
 * What an EPERM means. 0: it is ours already, made by a thread that is followed, and its first stop has not been
 * fetched. -EAGAIN: no tracer was found, so it may have gone.
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
	return process && process->owner && process->owner->takes;
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
	if (task->end.was_told)
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
	if (tid == hub->sleep.waker)
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
	task->birth.is_newborn = task->birth.has_maker = seized == 1;
	task->birth.is_taken = is_being_taken(process);
	*ret = task;
	return 0;
}

static bool is_own_thread(const struct kymo_hub *hub, pid_t tid)
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

		if (tid <= 0 || is_own_thread(hub, tid))
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

/* How many threads there are, or 0: a directory has two links, and one for each of those in it. */
static nlink_t count_threads(pid_t pid)
{
	struct stat tasks;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	return stat(name, &tasks) || tasks.st_nlink < 2 ? 0 : tasks.st_nlink - 2;
}

bool hub_knows_threads(const struct kymo_hub *hub, pid_t pid)
{
	const struct hub_process *process = hub_find_process(hub, pid);
	nlink_t n = 0;

	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n += !hub_has_end(hub, task); /* one that was waited for is not counted any more */
	return n && count_threads(pid) == n;
}

bool hub_lacks_threads(const struct kymo_hub *hub, pid_t pid)
{
	const struct hub_process *process = hub_find_process(hub, pid);
	nlink_t n = 0;

	n += process && !hub_find(hub, pid);
	for (const struct task *task = process ? process->tasks : NULL; task; task = task->in_process)
		n++;
	return count_threads(pid) > n;
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
