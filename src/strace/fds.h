/* Descriptors as -yy and --decode-fds show them. */
#ifndef KYMO_STRACE_FDS_H
#define KYMO_STRACE_FDS_H

#include <stdbool.h>
#include <stddef.h>

struct kymo_line;

/* put_fd of a target whose context is a thread: what -yy and --decode-fds want. */
bool strace_put_fd(void *context, int fd, const char *link, size_t n, struct kymo_line *text);

#endif
