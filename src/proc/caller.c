/* Which thread makes system calls for a recorder: the one whose own call suffers least. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "arch/remote.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proc/caller.h"
#include "proc/state.h"

#define LOOKED_AT 64 /* threads, for one that is awake */

/* By the call that it sleeps in; running, and stopped ones are in none. */
static enum kymo_remote_sleep sleep_of(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *line = NULL;
	int64_t number;
	uint64_t args[6];
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &line, NULL))
		return KYMO_REMOTE_SLEEPS_ONCE;
	if (sscanf(line, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &number,
		   &args[0], &args[1], &args[2], &args[3], &args[4], &args[5]) != 7)
		return KYMO_REMOTE_AWAKE;
	return kymo_remote_sleep_in(number, args);
}

pid_t kymo_thread_rather_than(pid_t pid, enum kymo_remote_sleep best, const struct kymo_process *held)
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	const struct dirent *entry;
	enum kymo_remote_sleep sleep;
	pid_t found = 0;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = best == KYMO_REMOTE_AWAKE ? NULL : opendir(name);
	for (int i = 0; tasks && best != KYMO_REMOTE_AWAKE && i < LOOKED_AT && (entry = readdir(tasks)); i++) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || (held && kymo_find_thread(held, tid)))
			continue;
		sleep = sleep_of(pid, tid);
		if (sleep >= best)
			continue;
		best = sleep;
		found = tid;
	}
	return found;
}

pid_t kymo_thread_for_calls(pid_t pid)
{
	pid_t found = kymo_thread_rather_than(pid, sleep_of(pid, pid), NULL);

	return found ? found : pid;
}
