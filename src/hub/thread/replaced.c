/* Processes that execute something while they are seized. docs/internals/engines.md, "Seizing while a thread executes".
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "hub/state.h"
#include "hub/thread/replaced.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "procfs/info.h"

#define RENAMED_NS 100000000ull

/* Instead of that of a stop in which it was killed. */
static void keep_status(struct kymo_hub *hub, struct task *task, pid_t tid, int status)
{
	if (task && task->resumed.is_fetched)
		hub_forget_status(hub, task);
	hub_keep_status(hub, tid, status);
}

/* The stop is kept, as it is all that a first thread tells. */
static void let_go_on(struct kymo_hub *hub, struct task *task, const siginfo_t *info)
{
	unsigned long status;

	if (info->si_status >> 8 != PTRACE_EVENT_EXIT ||
	    (task && task->state == TASK_STOPPED && task->stop == STOP_ENDING))
		return;
	if (task && !ptrace(PTRACE_GETEVENTMSG, info->si_pid, 0, &status))
		task->end.status = (int)status;
	ptrace(PTRACE_CONT, info->si_pid, 0, 0);
	if (task)
		keep_status(hub, task, info->si_pid, info->si_status << 8 | 0x7f);
}

static void let_end(struct kymo_hub *hub, pid_t tid)
{
	struct task *task = hub_find(hub, tid);
	siginfo_t info = { .si_pid = 0 };
	int status;

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) || !info.si_pid)
		return; /* not ours, or it has nothing to tell */
	if (info.si_code == CLD_TRAPPED)
		let_go_on(hub, task, &info);
	else if (waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid)
		keep_status(hub, task, tid, status);
}

void hub_let_end(struct kymo_hub *hub, pid_t pid)
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	const struct dirent *entry;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			let_end(hub, (pid_t)strtol(entry->d_name, NULL, 10));
}

void hub_let_go_of_renamed(struct kymo_hub *hub, pid_t pid)
{
	uint64_t deadline = kymo_now_ns() + RENAMED_NS;
	pid_t got = 0;
	int status;

	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	for (unsigned int spins = 0; !got && kymo_now_ns() < deadline; spins++) {
		kymo_back_off(spins);
		got = waitpid(pid, &status, __WALL | __WNOTHREAD | WNOHANG);
	}
	if (got == pid && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	else if (got == pid)
		hub_keep_status(hub, pid, status);
}

bool hub_was_replaced(struct kymo_hub *hub, pid_t pid)
{
	struct task *first = hub_find(hub, pid);
	struct kymo_process_info info;

	if (!first || first->process->is_launched || hub_has_end(hub, first))
		return first && !first->process->is_launched;
	if (!kymo_process_peek(pid, &info) || info.tracer == gettid())
		return false;
	keep_status(hub, first, pid, SIGKILL);
	return true;
}
