/* System calls by tracing. */
#ifndef KYMO_CLI_SYSCALL_TRACER_H
#define KYMO_CLI_SYSCALL_TRACER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct cli_syscalls;

/* Trace `command` (NULL-terminated; or NULL) or the `n` processes `pids`, until all threads are gone or the user
 * interrupts. `status_ret`: the command's, as waitpid() gives it. GONE, PERMISSION, BUSY, NOT_FOUND, FAILED. */
struct kymo_error *cli_syscalls_run(struct cli_syscalls *s, char **command, const pid_t *pids, size_t n,
				    int *status_ret);

/* Wait for the command that runs on after --for, or until a signal comes or the user is gone. As waitpid() gives it;
 * the number of the signal. */
int cli_syscalls_wait(struct cli_syscalls *s);

/* When all is said: let the user's kymo end with `status`, and serve others until they have gone. Returns at once where
 * there are none. */
void cli_syscalls_outlive(struct cli_syscalls *s, int status);

#endif
