/*
 * Other processes with the same memory. clone(CLONE_VM) without CLONE_THREAD makes one, as vfork(), posix_spawn() and
 * some old thread libraries do. Such a process runs the same text and is not in /proc/PID/task, so stopping the threads
 * does not stop it.
 */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "proc/members.h"
#include "proc/nap.h"
#include "proc/sharing.h"
#include "proc/state.h"
#include "procfs/info.h"

#define PATIENCE 100 /* moments: a vfork child is on its way to exec */
#define MOMENT_NS 20000000u

/* Threads that have ended, and the kernel's, all have the same memory: none. */
static bool has_memory(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info) && info.state != 'Z' && info.state != 'X';
}

/* A process that shares the memory, or 0: a child, the parent, another child of the parent's. Where the kernel has no
 * kcmp(), there is no telling. */
static pid_t sharing_process(const struct kymo_process *process)
{
	pid_t own = kymo_live_thread(process->pid), found = 0;
	struct dirent *entry;
	DIR *proc = has_memory(own) ? opendir("/proc") : NULL;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other > 0 && other != process->pid && kymo_compare_memory(own, other) == 0)
			found = other;
	}
	if (proc)
		closedir(proc);
	return found;
}

/* A process that is followed from its birth shares its memory with members of its tree alone. */
static pid_t find_sharing(const struct kymo_process *process)
{
	pid_t child = process->tree ? kymo_tree_sharing_child(process) : 0;

	return child || process->was_born_here ? child : sharing_process(process);
}

struct kymo_error *kymo_process_check_alone(struct kymo_process *process)
{
	pid_t child = find_sharing(process);

	for (int i = 0; i < PATIENCE && child; i++) {
		kymo_process_nap(process, MOMENT_NS);
		child = find_sharing(process);
	}
	return child ? kymo_error_create(KYMO_ERROR_BUSY,
					 "process %d shares the memory of process %d, and would run on while its code "
					 "is changed; nothing was changed",
					 child, process->pid)
		     : NULL;
}
