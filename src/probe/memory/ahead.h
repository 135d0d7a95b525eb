/* Memory that threads of their own allocate and free, while the caller goes on. */
#ifndef KYMO_PROBE_MEMORY_AHEAD_H
#define KYMO_PROBE_MEMORY_AHEAD_H

#include <stddef.h>
#include <stdint.h>

struct kymo_range {
	uint64_t offset, size;
};

struct kymo_ahead;

/* Begin to allocate `n` ranges of a file, which stays open and as long as it is to the end. The thread has all signals
 * blocked. NULL where there can't be one: nothing was begun. */
struct kymo_ahead *kymo_ahead_begin(int fd, const struct kymo_range *ranges, size_t n);

/* Wait for it, and free it. 0, or the errno value of the first range that has no memory. */
int kymo_ahead_end(struct kymo_ahead *ahead);

/* Unmap `size` bytes at `view` (NULL: nothing), and close `fd`, which frees its memory. A detached thread does that.
 * The caller does it where there can't be a thread, or where such a thread is still at an earlier call's. */
void kymo_free_aside(void *view, uint64_t size, int fd);

#endif
