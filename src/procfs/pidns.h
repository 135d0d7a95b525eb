/*
 * Process ids across PID namespaces (pid_namespaces(7)).
 */
#ifndef KYMO_PROCFS_PIDNS_H
#define KYMO_PROCFS_PIDNS_H

#include <sys/types.h>

/* The id that this process has for what thread `tid`, in its own PID namespace, has `pid` for; `pid` where the two
 * share one. 0: there is no such, or it is not to be known. Looks at all of /proc where they do not. */
pid_t kymo_pid_here(pid_t tid, pid_t pid);

#endif
