#include "probe/snapshot/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STATUS_MAX 16384
#define STAT_START_BRK 47  /* field of /proc/PID/stat */
#define MAPPINGS_MAX 65530 /* Documentation/admin-guide/sysctl/vm.rst: max_map_count */

/* /proc/PID/status, a fresh string; or NULL. */
static char *read_status(pid_t pid)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return kymo_read_file(AT_FDCWD, path, STATUS_MAX, &text, NULL) ? NULL : text;
}

static uint64_t handled_signals(const char *status)
{
	const char *line = status ? strstr(status, "\nSigCgt:") : NULL;

	return line ? strtoull(line + strlen("\nSigCgt:"), NULL, 16) << 1 : 0;
}

uint64_t kymo_handled_signals(pid_t pid)
{
	kymo_cleanup_free char *status = read_status(pid);

	return handled_signals(status);
}

static bool locks_memory(const char *status)
{
	const char *line = status ? strstr(status, "\nVmLck:") : NULL;

	return !line || strtoul(line + strlen("\nVmLck:"), NULL, 10);
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

void probe_status_read(pid_t pid, struct probe_status *ret)
{
	kymo_cleanup_free char *status = read_status(pid);
	struct rlimit limit;

	*ret = (struct probe_status){
		.handled_signals = handled_signals(status),
		.heap_start = heap_start(pid),
		.locks_memory = locks_memory(status),
		.has_address_limit = prlimit(pid, RLIMIT_AS, NULL, &limit) || limit.rlim_cur != RLIM_INFINITY,
		.mappings_max = mappings_max(),
	};
}
