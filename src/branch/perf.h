/*
 * What makes a processor record the branches of a thread: a perf event with a buffer that is overwritten (Intel PT,
 * BTS: an AUX area, LBR: samples). Private to the room; for any thread of this process.
 *
 * The kernel writes into the buffer until branch_perf_read(), also if the thread has ended. Nothing of it is in the
 * target, and all of it goes with this process.
 */
#ifndef KYMO_BRANCH_PERF_H
#define KYMO_BRANCH_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "branch/processor.h"

struct branch_perf;

/* Record user code of thread `tid` from now on; of about `tail` branches. A negative errno: of perf_event_open(2);
 * -ENOENT: the kernel has no such hardware; -ENOBUFS: no memory may be locked for the buffer. */
int branch_perf_open(enum kymo_branch_hardware which, pid_t tid, size_t tail, struct branch_perf **ret);

/* Stop, and take what is there: fresh `bytes` as struct branch_raw has them. `is_overwritten`: there was more. -ENOMEM.
 */
int branch_perf_read(struct branch_perf *perf, uint8_t **bytes, size_t *size, bool *is_overwritten);

/* NULL is allowed. */
void branch_perf_close(struct branch_perf *perf);

/* kernel.perf_event_paranoid. */
int branch_perf_paranoid(void);

/* What an errno of branch_perf_open() means, and -ENOSYS: nothing here decodes it. Never NULL. Pure. */
struct kymo_error *branch_perf_refusal(enum kymo_branch_hardware which, int err, int paranoid);

/* The ring of `size` bytes that was written up to `head`, and from there on before: in one piece, the oldest byte
 * first. `bytes` has room for `size`. Whether all of it was written. Pure. */
bool branch_perf_unwind(const uint8_t *ring, size_t size, size_t head, uint8_t *bytes);

#endif
