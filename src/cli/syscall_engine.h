/* Engines on the threads whose system calls are seen. */
#ifndef KYMO_CLI_SYSCALL_ENGINE_H
#define KYMO_CLI_SYSCALL_ENGINE_H

#include <sys/types.h>

struct cli_syscalls;

/* Have an engine on a thread of process `pid`. On the hub's thread. A negative errno of kymo_engine_attach(); -EEXIST:
 * it has one already. */
int cli_syscall_follow(struct cli_syscalls *s, pid_t tid, pid_t pid);

#endif
