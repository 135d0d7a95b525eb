/*
 * A process, opened, watched and detached. The room is processes from outside: stopping them, system calls executed in
 * their name, launching and following them, all through a hub (docs/internals/engines.md).
 *
 * A `struct kymo_process` is used from one thread, the one that created it (ptrace knows its tracer by thread).
 * Destroying it detaches every thread, in the state in which the process had them.
 */
#ifndef KYMO_PROC_PROCESS_H
#define KYMO_PROC_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/*
 * Open a running process; nothing is stopped or traced yet. GONE: no such process. PERMISSION: with what to do. BUSY: a
 * tracer that serves no other process traces it; the sentence names it. If the tracer is a hub that serves others, the
 * process is stopped through it. BAD_DATA: a 32-bit program. One that has just been started is waited for until its
 * files are mapped.
 */
struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret);

/* The same for reading only; another tracer does not matter. */
struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret);

/* Detach all threads, which run on as the process had them, and free. NULL is allowed. */
void kymo_process_destroy(struct kymo_process *process);

pid_t kymo_process_pid(const struct kymo_process *process);

/* Its id in its own pid namespace; looked up once. */
pid_t kymo_process_inner_pid(struct kymo_process *process);

/* It is in a tree. Other recorders and tracers of it are clients of this thread's hub, and wait while this thread
 * sleeps. */
bool kymo_process_is_at_own_hub(const struct kymo_process *process);

/* Readable when the process has ended. Stays with the process. */
int kymo_process_pidfd(const struct kymo_process *process);

/* For a launched one: whether it has ended, and the status as waitpid() gives it. Does not block. */
bool kymo_process_ended(struct kymo_process *process, int *status_ret);

/* End a launched one, and wait until it has. */
void kymo_process_kill(struct kymo_process *process);

/* Whether it has executed another program, or has ended: requests fail then, and the tree has reported it or is about
 * to. */
bool kymo_process_is_past(const struct kymo_process *process);

#endif
