/* Stopping all threads of a process, and letting them go: through the hub that traces it, or by this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "hub/thread/tracee.h"
#include "proc/caller.h"
#include "proc/call.h"
#include "proc/joined.h"
#include "proc/frozen.h"
#include "proc/members.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "procfs/threads.h"

#define CALLER_TRIES 8 /* threads that were to be awake, and sleep where they are stopped */

/* `second`: 0 for all threads. */
static struct kymo_error *stop_threads(struct kymo_process *process, pid_t second)
{
	struct kymo_error *error;
	bool is_joined;

	if (process->tree)
		return kymo_frozen_stop(process);
	if (kymo_process_is_stopped(process))
		return NULL;
	error = kymo_joined_stop(process, second, &is_joined);
	return error || is_joined ? error : kymo_frozen_take(process, second);
}

struct kymo_error *kymo_process_stop(struct kymo_process *process)
{
	return stop_threads(process, 0);
}

struct kymo_error *kymo_process_stop_first(struct kymo_process *process)
{
	struct kymo_error *error;
	pid_t second;

	if (process->tree || kymo_process_is_stopped(process))
		return stop_threads(process, 0);
	second = kymo_thread_for_calls(process->pid);
	error = stop_threads(process, second);
	for (int i = 0; i < CALLER_TRIES && !error && (second = kymo_thread_for_calls_rather(process)); i++) {
		kymo_process_resume(process);
		error = stop_threads(process, second);
	}
	return error;
}

struct kymo_error *kymo_process_stop_others(struct kymo_process *process)
{
	return process->tree ? kymo_frozen_stop(process) : kymo_frozen_take(process, 0);
}

void kymo_process_resume(struct kymo_process *process)
{
	if (!process->tree)
		kymo_frozen_leave(process);
	else if (kymo_tree_is_alone(process->tree))
		kymo_frozen_release(process);
	else
		kymo_frozen_resume(process);
}
