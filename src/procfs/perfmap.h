/* The file in which a program names the code that it has made. */
#ifndef KYMO_PROCFS_PERFMAP_H
#define KYMO_PROCFS_PERFMAP_H

#include <sys/types.h>

/*
 * Open the perf map of process `pid` for reading: /tmp/perf-PID.map in the process's own root, by the id that the
 * process has for itself. A descriptor, which is the caller's. -1 where there is none, or where it is no regular file
 * of the process's user. What it says is the program's own claim. The idea is perf's
 * (tools/perf/Documentation/jit-interface.txt in Linux).
 */
int kymo_open_perf_map(pid_t pid);

#endif
