/* System calls by the kernel's tracepoints. */
#ifndef KYMO_STRACE_KERNEL_H
#define KYMO_STRACE_KERNEL_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_strace;

/* As kymo_strace_run(); with neither a command nor a process, the calls of all but this one. */
struct kymo_error *kymo_strace_run_in_kernel(struct kymo_strace *s, char **command, pid_t pid, int *status_ret);

#endif
