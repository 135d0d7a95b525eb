#include "procfs/perfmap.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "procfs/info.h"

#define TOLERATED_S 1 /* clocks are compared that the kernel reads at different times */

/* Written last before the process began. */
static bool is_of_before(const struct stat *map, const struct kymo_process_info *process)
{
	struct timespec booted, now;

	if (clock_gettime(CLOCK_BOOTTIME, &booted) || clock_gettime(CLOCK_REALTIME, &now))
		return false;
	return map->st_mtim.tv_sec + TOLERATED_S <
	       now.tv_sec - booted.tv_sec + (time_t)(process->start_time / (uint64_t)sysconf(_SC_CLK_TCK));
}

int kymo_open_perf_map(pid_t tid)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_process_info info;
	struct stat process, map;
	char name[80];

	if (!kymo_process_peek(tid, &info) || (info.tgid != tid && !kymo_process_peek(info.tgid, &info)))
		return -1;
	/* The first thread may have ended before the others: then it has no root any more. */
	snprintf(name, sizeof(name), "/proc/%d/root/tmp/perf-%d.map", kymo_live_thread(info.tgid), info.inner_pid);
	fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%d", tid);
	if (fd < 0 || fstat(fd, &map) || stat(name, &process) || !S_ISREG(map.st_mode) ||
	    map.st_uid != process.st_uid || is_of_before(&map, &info))
		return -1;
	return kymo_take_fd(fd);
}
