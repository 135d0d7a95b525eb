/* The remote calls of the thread that kymo_remote_begin() has chosen (call.h). */
#ifndef KYMO_PROC_BATCH_H
#define KYMO_PROC_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_process;

/* Bytes below the frame: KYMO_REMOTE_TEXT of them for callers, and the table of a batch behind that. */
#define KYMO_REMOTE_SCRATCH 1024

/* Execute one call. `result_ret` is as the kernel gave it (negative errno). An error means that the thread is gone, or
 * did not come back. */
struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6],
				       int64_t *result_ret);

/* What came of a call that was queued: an error, or NULL. */
typedef struct kymo_error *kymo_remote_result(struct kymo_process *process, const uint64_t args[6], int64_t result);

/*
 * The same, of a call whose result may be looked at later, by `check` (NULL: not at all): with the next call that is
 * waited for, kymo_remote_flush(), or the last kymo_remote_end(). Calls are made in their order. After the first that
 * fails those that were queued behind it are not made, but for those whose result is not looked at. At once where there
 * are no batches.
 */
struct kymo_error *kymo_remote_queue(struct kymo_process *process, long number, const uint64_t args[6],
				     kymo_remote_result *check);

/* Make the calls that are queued. */
struct kymo_error *kymo_remote_flush(struct kymo_process *process);

/*
 * Whether calls may be made in batches (arch/batch.h): the thread that makes them is the only one, and a signal is
 * there that means nothing to it. The caller knows that nobody else has its handlers (CLONE_SIGHAND), as after an exec.
 */
bool kymo_remote_may_batch(struct kymo_process *process);

/* They are from now on, until the thread is given back, if the code for them is at `at`. */
void kymo_remote_use_batches(struct kymo_process *process, uint64_t at);

/* Address of KYMO_REMOTE_TEXT bytes of scratch memory of that thread (its stack, below the frame). */
#define KYMO_REMOTE_TEXT 256
uint64_t kymo_remote_scratch(const struct kymo_process *process);

#endif
