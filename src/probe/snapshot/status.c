#include "probe/snapshot/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"

#define STAT_START_BRK 47  /* field of /proc/PID/stat */
#define MAPPINGS_MAX 65530 /* Documentation/admin-guide/sysctl/vm.rst: max_map_count */

/* By their numbers. */
static uint64_t handled_signals(const struct kymo_process_info *info)
{
	return info->caught << 1;
}

uint64_t kymo_handled_signals(pid_t pid)
{
	struct kymo_process_info info;

	return kymo_process_peek_status(pid, &info) ? handled_signals(&info) : 0;
}

static uint64_t heap_start(pid_t pid)
{
	kymo_cleanup_free char *text = NULL;
	char name[64], *at;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &text, NULL))
		return 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < STAT_START_BRK; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static size_t mappings_max(void)
{
	static _Atomic size_t known; /* of the machine, read once; 0: not yet */
	kymo_cleanup_free char *text = NULL;

	if (!known)
		known = kymo_read_file(AT_FDCWD, "/proc/sys/vm/max_map_count", 64, &text, NULL)
				? MAPPINGS_MAX
				: (size_t)strtoul(text, NULL, 10);
	return known;
}

void probe_status_read(struct kymo_process *process, struct probe_status *ret)
{
	const pid_t pid = kymo_process_pid(process);
	struct kymo_process_info info;
	struct rlimit limit;
	const bool is_known = kymo_process_status(process, &info);

	*ret = (struct probe_status){
		.handled_signals = is_known ? handled_signals(&info) : 0,
		.heap_start = heap_start(pid),
		.locks_memory = !is_known || info.locked,
		.has_address_limit = prlimit(pid, RLIMIT_AS, NULL, &limit) || limit.rlim_cur != RLIM_INFINITY,
		.mappings_max = mappings_max(),
	};
}
