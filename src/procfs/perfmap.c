#include "procfs/perfmap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "procfs/info.h"

int kymo_open_perf_map(pid_t pid)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_process_info info;
	struct stat process, map;
	char name[80];

	if (!kymo_process_peek(pid, &info))
		return -1;
	snprintf(name, sizeof(name), "/proc/%d/root/tmp/perf-%d.map", pid, info.inner_pid);
	fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%d", pid);
	if (fd < 0 || fstat(fd, &map) || stat(name, &process) || !S_ISREG(map.st_mode) || map.st_uid != process.st_uid)
		return -1;
	return kymo_take_fd(fd);
}
