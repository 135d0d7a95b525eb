/*
 * System calls that come back early: the whole transfer or an error. All return 0 or a negative errno; none allocates
 * but the two that say so. Thread safe.
 */
#ifndef KYMO_BASE_IO_H
#define KYMO_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Write all of `size` bytes, over EINTR and short counts. */
int kymo_write_all(int fd, const void *data, size_t size);

/* Write all of `n` parts; `parts` is used up (changed) on the way. */
int kymo_writev_all(int fd, struct iovec *parts, int n);

/* Read or write all of `size` bytes at `offset`. -EIO where the file ends before. */
int kymo_pread_all(int fd, void *data, size_t size, off_t offset);
int kymo_pwrite_all(int fd, const void *data, size_t size, off_t offset);

/* Read what is left of a file or pipe into a fresh, NUL-terminated buffer that the caller frees. `size_ret` may be
 * NULL. At most `limit` bytes: -EFBIG beyond. The descriptor stays open. */
int kymo_read_fd(int fd, size_t limit, char **ret, size_t *size_ret);

/* Read a file of unknown length (procfs too) into a fresh, NUL-terminated buffer that the caller frees. `size_ret` may
 * be NULL. At most `limit` bytes: -EFBIG beyond. */
int kymo_read_file(int dirfd, const char *path, size_t limit, char **ret, size_t *size_ret);

#define KYMO_NUMBERS 1000000

/* The first number from 1 on for which the directory has no PATH.NUMBER; KYMO_NUMBERS: all below are taken. */
int kymo_free_number(int dirfd, const char *path);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t kymo_now_ns(void);

#endif
