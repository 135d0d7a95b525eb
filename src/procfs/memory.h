/* The memory of a process, through /proc/PID/mem: of a running or a stopped process. */
#ifndef KYMO_PROCFS_MEMORY_H
#define KYMO_PROCFS_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A process and its memory, by descriptors that stay with this process: another one with the same id is never meant. */
struct kymo_memory {
	int pidfd;
	int fd; /* /proc/PID/mem, or -1 after it was refused */
};

/* Open both, for kymo_memory_deinit(). GONE, PERMISSION, BAD_DATA: it has no memory. */
struct kymo_error *kymo_memory_init(pid_t pid, struct kymo_memory *ret);

/* The same for a process that is held, by its first thread. Why its memory cannot be opened is no error, and goes to
 * `refusal_ret`. */
struct kymo_error *kymo_memory_init_held(pid_t pid, struct kymo_memory *ret, struct kymo_error **refusal_ret);
void kymo_memory_deinit(struct kymo_memory *memory);

/* Whole reads and writes, of read-only text too. Negative errno; -EIO where unmapped. A write within one page is one
 * copy: it is made or not made, also if the caller is killed. */
int kymo_memory_read(const struct kymo_memory *memory, uint64_t address, void *data, size_t size);
int kymo_memory_write(const struct kymo_memory *memory, uint64_t address, const void *data, size_t size);

#endif
