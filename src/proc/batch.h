/* Several system calls in the name of a stopped thread, one after the other. */
#ifndef KYMO_PROC_BATCH_H
#define KYMO_PROC_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/batch.h"
#include "base/error.h"

struct kymo_process;

/* A signal that is not in `mask`, is ignored by default, and comes at once: for a program that has no handlers, as
 * nothing of it has run. 0: there is none. */
int kymo_harmless_signal(uint64_t mask);

/*
 * Whether calls may be made together (arch/batch.h), with one stop instead of two for each. So it is while a program is
 * frozen where it begins, and where it has just got the signal of its start stub: it has one thread and no handlers.
 * Between kymo_remote_begin() and kymo_remote_end(). docs/internals/engines.md, "Calls in batches".
 */
bool kymo_remote_may_batch(struct kymo_process *process);

/*
 * Make `n` calls in their order, until one fails. Results are as the kernel gave them; a call that was not made has
 * -ECANCELED. `code` is where the process has the code for batches: it is compared. 0: there is none, and calls are
 * made one by one. Between kymo_remote_begin() and kymo_remote_end(). Errors are those of kymo_remote_syscall().
 */
struct kymo_error *kymo_remote_calls(struct kymo_process *process, uint64_t code, struct kymo_batch_call *calls,
				     size_t n);

#endif
