/* Engines on the threads whose system calls are seen. */
#ifndef KYMO_STRACE_ENGINE_H
#define KYMO_STRACE_ENGINE_H

#include <sys/types.h>

struct kymo_strace;

/* Have an engine on a thread of process `pid`. On the hub's thread. A negative errno of kymo_engine_attach(); -EEXIST:
 * it has one already. */
int strace_follow(struct kymo_strace *s, pid_t tid, pid_t pid);

#endif
