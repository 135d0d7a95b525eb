/*
 * Other processes with the same memory. clone(CLONE_VM) without CLONE_THREAD (vfork, posix_spawn, some old thread libraries) makes a
 * process that runs the same text and is not in /proc/PID/task, so stopping the threads does not stop it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/process.h"

#define PATIENCE 100	/* times 20 ms: a vfork child is on its way to exec */

static pid_t parent_of(const char *pid)
{
	kymo_cleanup_free char *stat = NULL;
	char name[300], state;
	const char *at;
	int parent;

	snprintf(name, sizeof(name), "/proc/%s/stat", pid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &stat, NULL))
		return 0;
	at = strrchr(stat, ')');
	return at && sscanf(at + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

/* A child that shares the memory, or 0. Where the kernel has no kcmp(), there is no telling. */
static pid_t sharing_child(const struct kymo_process *process)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);

		if (child > 0 && parent_of(entry->d_name) == process->pid &&
		    syscall(SYS_kcmp, process->pid, child, KCMP_VM, 0, 0) == 0)
			found = child;
	}
	if (proc)
		closedir(proc);
	return found;
}

struct kymo_error *kymo_process_check_alone(struct kymo_process *process)
{
	pid_t child = sharing_child(process);

	for (int i = 0; i < PATIENCE && child; i++) {
		nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
		child = sharing_child(process);
	}
	return child ? kymo_error_create(KYMO_ERROR_BUSY,
					 "process %d shares the memory of process %d, and would run on while its code is changed; nothing was changed",
					 child, process->pid) :
		       NULL;
}
