/*
 * Process ids across PID namespaces (pid_namespaces(7)).
 */
#ifndef KYMO_PROCFS_PIDNS_H
#define KYMO_PROCFS_PIDNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Refuses a /proc of another PID namespace than our own: process ids that we give to the kernel are other processes
 * there (a container that kept the /proc of its host). Callers that use an id and what /proc says of it ask this first.
 * The answer is kept: what is mounted later on /proc changes nothing. FAILED. Any thread may ask.
 */
struct kymo_error *kymo_proc_check(void);

/* The id that this process has for what thread `tid`, in its own PID namespace, has `pid` for; `pid` where the two
 * share one. 0: there is no such, or it is not to be known. Looks at all of /proc where they do not. */
pid_t kymo_pid_here(pid_t tid, pid_t pid);

/* The same of a group of processes. */
pid_t kymo_group_here(pid_t tid, pid_t group);

/* The id that process `pid` has for `process`, which is in its PID namespace or in one above that. 0: one of them is
 * gone, or `process` is further down. Of namespaces beside each other the answer means nothing. */
pid_t kymo_pid_there(pid_t process, pid_t pid);

/* What this process's PID namespace is known by: the inode of /proc/self/ns/pid. 0: there are none. */
uint64_t kymo_own_pidns(void);

/* Whether all processes of the PID namespace of that inode are in /proc: it is ours, or below ours and has processes
 * that this user may look at. In the first namespace all are. */
bool kymo_sees_pidns(uint64_t inode);

#endif
