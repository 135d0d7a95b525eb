/* System calls by the kernel's tracepoints. */
#ifndef KYMO_CLI_SYSCALL_KERNEL_H
#define KYMO_CLI_SYSCALL_KERNEL_H

#include <sys/types.h>

#include "base/error.h"

struct cli_syscalls;

/* As cli_syscalls_run(); with neither a command nor a process, the calls of all but this one. */
struct kymo_error *cli_syscalls_run_in_kernel(struct cli_syscalls *s, char **command, pid_t pid, int *status_ret);

#endif
