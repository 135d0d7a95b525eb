/* A process: opened, watched, let go of. */
#ifndef KYMO_PROC_PROCESS_H
#define KYMO_PROC_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/*
 * Look at a running process; nothing is stopped or traced yet. GONE: no such process; PERMISSION with what to do; BUSY:
 * it is traced already by somebody who lets nobody in, and is named; else it is stopped through that one's hub;
 * BAD_DATA: a 32-bit program.
 */
struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret);

/* The same for reading only: a process that is being traced by somebody is fine. */
struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret);

/* Let go of all threads (detached, running as the process had them) and free. NULL is allowed. */
void kymo_process_destroy(struct kymo_process *process);

pid_t kymo_process_pid(const struct kymo_process *process);

/* The id that it has for itself, in its own pid namespace; looked up once. */
pid_t kymo_process_inner_pid(struct kymo_process *process);

/* It is in a tree: who else traces or records it does so through the hub of this thread, and gets no further while that
 * sleeps. */
bool kymo_process_is_at_own_hub(const struct kymo_process *process);

/* Readable when the process has ended. Stays with the process. */
int kymo_process_pidfd(const struct kymo_process *process);

/* For a launched one: whether it has ended, and the status as waitpid() gives it. Does not block. */
bool kymo_process_ended(struct kymo_process *process, int *status_ret);

/* End a launched one, and wait until it has. */
void kymo_process_kill(struct kymo_process *process);

/* Whether it has become another program, or has ended: requests fail then, and the tree has told it or is about to. */
bool kymo_process_is_past(const struct kymo_process *process);

#endif
