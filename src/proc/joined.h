/* A process that is frozen through the hub that traces it: another process's, or this thread's
 * (docs/internals/engines.md). hub/freeze/freeze.c is the other side. */
#ifndef KYMO_PROC_JOINED_H
#define KYMO_PROC_JOINED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/* Whether what thread `tracer` traces can be stopped through that, as far as can be told without asking. */
bool kymo_can_join(pid_t tracer);

/*
 * Stop the process through the hub of another process, which traces it: all threads if `second` is 0, else the first
 * thread and thread `second`, which may be the same. `joined_ret` is false if there is no such hub. Then there is no
 * error, and the caller stops the process itself. Errors: BUSY, GONE. After success process->threads has the threads,
 * and process->joined is set until kymo_joined_resume().
 */
struct kymo_error *kymo_joined_stop(struct kymo_process *process, pid_t second, bool *joined_ret);

/* The same through this thread's hub, by the process's owner. The process may be frozen already, and is looked at anew.
 * After an error the request may last until kymo_joined_resume(). If the owner takes processes (hub/freeze/freeze.h)
 * and is refused, `busy_ret` is the thread that another process traces, or 0; NULL is allowed for members of a tree. */
struct kymo_error *kymo_joined_freeze(struct kymo_process *process, pid_t second, pid_t *busy_ret);

/* They run as they had been. */
void kymo_joined_resume(struct kymo_process *process);

/* BUSY, PERMISSION, GONE, FAILED: why a thread of process `pid` can't be traced, by the errno of its seizing. */
struct kymo_error *kymo_not_seized(pid_t pid, int err);

#endif
