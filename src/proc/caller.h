/* The thread that makes system calls for a recorder. */
#ifndef KYMO_PROC_CALLER_H
#define KYMO_PROC_CALLER_H

#include <sys/types.h>

#include "arch/remote.h"

struct kymo_process;

/*
 * Choose a thread of the process to make system calls by: one of the first threads that is in no system call, or else
 * the thread whose call suffers least. Returns `pid` if no thread is better than the first one. The choice may be out
 * of date: a thread that runs may be about to sleep.
 */
pid_t kymo_thread_for_calls(pid_t pid);

/*
 * Find a thread of process `pid` whose system call suffers less by that than `best` says. Threads that are stopped in
 * `held` are left out; `held` may be NULL. Returns 0 where there is no such thread.
 */
pid_t kymo_thread_rather_than(pid_t pid, enum kymo_remote_sleep best, const struct kymo_process *held);

#endif
