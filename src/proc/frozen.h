/* Stopping a process by the hub of this thread, and resuming it. */
#ifndef KYMO_PROC_FROZEN_H
#define KYMO_PROC_FROZEN_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/*
 * Stop a process that is not traced: all threads if `second` is 0, also if the first one is stopped already; else the
 * first thread and thread `second`. After an error the process runs as before.
 */
struct kymo_error *kymo_frozen_take(struct kymo_process *process, pid_t second);

/* Let it run, untraced. A thread that does not stop for that in a while is detached by the next of these two calls, or
 * by kymo_frozen_serve(). */
void kymo_frozen_leave(struct kymo_process *process);
void kymo_frozen_serve(struct kymo_process *process);

/* For processes that are followed. */
struct kymo_error *kymo_frozen_stop(struct kymo_process *process);
void kymo_frozen_resume(struct kymo_process *process);
void kymo_frozen_engines(struct kymo_process *process); /* have one on each stopped thread */
void kymo_frozen_run(struct kymo_process *process); /* the same, of a program that is starting and goes on with that */

/* If no thread of it lives, wait for its end to be told. */
void kymo_frozen_look(struct kymo_process *process);

/* Follow it no more; it runs as it had been. */
void kymo_frozen_release(struct kymo_process *process);

#endif
