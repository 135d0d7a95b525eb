/* What stands before lines. */
#ifndef KYMO_CLI_SYSCALL_PREFIX_H
#define KYMO_CLI_SYSCALL_PREFIX_H

#include <stdint.h>

struct cli_syscall_thread;
struct kymo_line;

/* The thread, the time, the number and the address, as far as they are wanted. The line is empty before. */
void cli_syscall_put_prefix(struct cli_syscall_thread *thread);

/* A time of so many digits behind the second. */
void cli_syscall_put_seconds(struct kymo_line *line, uint64_t ns, unsigned int digits);

#endif
