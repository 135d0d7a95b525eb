#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/launch.h"
#include "proc/call.h"
#include "proc/joined.h"
#include "proc/frozen.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/memory.h"

#define OTHERS_PATIENCE_NS 4000000000u

static struct kymo_error *traced_error(pid_t pid, pid_t by)
{
	char comm[16];
	const pid_t tracer = kymo_process_of(by, comm);

	return kymo_error_create(KYMO_ERROR_BUSY, "process %d is being traced by process %d (%s); let it detach first",
				 pid, tracer, comm);
}

/* Another kymo that comes or goes traces it for a moment. One that lets others in need not go. */
static struct kymo_error *outwait_kymo(pid_t pid, struct kymo_process_info *info, bool *can_join_ret)
{
	uint64_t deadline = kymo_now_ns() + OTHERS_PATIENCE_NS;
	struct kymo_error *error = NULL;

	*can_join_ret = false;
	while (!error && info->tracer && !(*can_join_ret = kymo_can_join(info->tracer)) && kymo_now_ns() < deadline) {
		struct kymo_process_info tracer;

		error = kymo_process_info(info->tracer, &tracer);
		if (!error && strcmp(tracer.comm, "kymo"))
			return NULL;
		kymo_error_destroy(error);
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
		error = kymo_process_info(pid, info);
	}
	return error;
}

static struct kymo_error *open_checked(pid_t pid, bool may_be_traced, struct kymo_process **ret)
{
	struct kymo_process *process = NULL;
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(pid, &info);
	bool may_join = may_be_traced;

	if (error)
		return error;
	pid = info.tgid;
	if (pid == getpid())
		return kymo_error_create(KYMO_ERROR_USAGE, "kymo cannot record itself");
	if ((info.state == 'Z' || info.state == 'X') && kymo_live_thread(pid) == pid)
		return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended; its parent has not collected it yet",
					 pid);
	if (info.tracer && !may_be_traced)
		error = outwait_kymo(pid, &info, &may_join);
	if (error)
		return error;
	if (info.tracer && !may_join)
		return traced_error(pid, info.tracer);
	if (info.shadow_stack)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d has shadow stacks (CET), which kymo's pads do not serve yet", pid);
	error = kymo_process_create(pid, &process);
	if (!error)
		error = kymo_process_check_class(process);
	if (error) {
		kymo_process_destroy(process);
		return error;
	}
	if (!may_be_traced && info.state != 'T' && info.state != 't')
		kymo_linker_wait(process, info.start_time); /* "app & kymo record --pid $!" */
	*ret = process;
	return NULL;
}

struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret)
{
	return open_checked(pid, false, ret);
}

struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret)
{
	return open_checked(pid, true, ret);
}

void kymo_process_destroy(struct kymo_process *process)
{
	if (!process)
		return;
	if (process->remote.active)
		kymo_error_destroy(kymo_remote_end(process));
	if (process->tree)
		kymo_frozen_release(process);
	else
		kymo_frozen_leave(process);
	kymo_process_free(process);
}

pid_t kymo_process_inner_pid(struct kymo_process *process)
{
	struct kymo_process_info info;

	if (!process->inner_pid && kymo_process_status(process, &info))
		process->inner_pid = info.inner_pid;
	return process->inner_pid ? process->inner_pid : process->pid;
}

pid_t kymo_process_pid(const struct kymo_process *process)
{
	return process->pid;
}

bool kymo_process_is_at_own_hub(const struct kymo_process *process)
{
	return process->tree;
}

int kymo_process_pidfd(const struct kymo_process *process)
{
	return process->memory.pidfd;
}

bool kymo_process_ended(struct kymo_process *process, int *status_ret)
{
	struct pollfd ended = { .fd = process->memory.pidfd, .events = POLLIN };

	if (process->tree)
		kymo_frozen_look(process);
	/* Stops are told by the same waitpid() as the end, and are not to be lost. */
	if (process->tree || process->state == PROCESS_PAST) {
		*status_ret = process->status;
		return process->state == PROCESS_PAST;
	}
	kymo_frozen_serve(process);
	if (process->child == PROCESS_IS_OURS &&
	    hub_launched_ended(process->owner->hub, process->pid, &process->status))
		process->child = PROCESS_WAS_REAPED;
	if (process->child == PROCESS_IS_OURS)
		return false;
	*status_ret = process->child == PROCESS_WAS_REAPED ? process->status : 0;
	return process->child == PROCESS_WAS_REAPED || poll(&ended, 1, 0) > 0;
}

void kymo_process_kill(struct kymo_process *process)
{
	int status;

	syscall(SYS_pidfd_send_signal, process->memory.pidfd, SIGKILL, NULL, 0);
	kymo_process_resume(process);
	for (unsigned int spins = 0; !kymo_process_ended(process, &status); spins++) {
		if (process->tree && kymo_tree_pump(process->tree))
			spins = 0;
		kymo_back_off(spins);
	}
}

bool kymo_process_is_past(const struct kymo_process *process)
{
	return process->state == PROCESS_PAST;
}
