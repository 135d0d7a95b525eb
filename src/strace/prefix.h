/* What stands before lines. */
#ifndef KYMO_STRACE_PREFIX_H
#define KYMO_STRACE_PREFIX_H

#include <stdint.h>

struct strace_thread;
struct kymo_line;

/* The thread, the time, the number and the address, as far as they are wanted. The line is empty before. */
void strace_put_prefix(struct strace_thread *thread);

/* A time of so many digits after the second. */
void strace_put_seconds(struct kymo_line *line, uint64_t ns, unsigned int digits);

#endif
