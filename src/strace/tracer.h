/* System calls by tracing. */
#ifndef KYMO_STRACE_TRACER_H
#define KYMO_STRACE_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_strace;

/* Trace `command` (NULL-terminated; or NULL) or the `n` processes `pids`, until all threads are gone or the user
 * interrupts. `status_ret`: the command's, as waitpid() gives it. GONE, PERMISSION, BUSY, NOT_FOUND, FAILED. */
struct kymo_error *kymo_strace_run(struct kymo_strace *s, char **command, const pid_t *pids, size_t n, int *status_ret);

/* Wait for the command that runs on after --for, or until a signal comes or the user is gone. As waitpid() gives it;
 * the number of the signal. */
int kymo_strace_wait(struct kymo_strace *s);

/* Whether the hub is kept: for other instances that trace the same processes, or for a command that runs on. */
bool kymo_strace_has_hub(const struct kymo_strace *s);

/* Serve them until they have gone, or a signal comes. */
void kymo_strace_serve(struct kymo_strace *s);

#endif
