/* What pads call to read memory; as a C function for tests. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GUEST_READ_H
#define KYMO_ARCH_X86_64_GUEST_READ_H

#include <stdint.h>

/* `size` bytes at `address` to `to`: fewer where there is a hole, and none, or a negative errno, at one. `live` is a
 * live page. Signal handlers and other threads may do the same. */
int64_t kymo_guest_read(char *to, const char *live, uint64_t size, uint64_t address);

/* The same by a system call; 0: the process must make none. */
int64_t kymo_guest_read_by_call(char *to, const char *live, uint64_t size, uint64_t address);

/* Memory at `address` becomes the `size` bytes at `from`, by a system call: `size` comes back. Or else it stays as it
 * is, and 0 or a negative errno comes back: where it may not be written, or is of two pages, or the process must make
 * no calls. */
int64_t kymo_guest_write(char *from, const char *live, uint64_t size, uint64_t address);

#endif
